import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { BUGS } from './bugs.ts'
import { HOLD } from './controls.ts'
import { type Edit, instrumentText } from './edits.ts'
import { preparePlants } from './plants.ts'
import { POINTS, pointEdits } from './points.ts'

/** Plants of the tests of the world itself. */
const text = (file: string) => readFileSync(file, 'utf8')
const files = [...new Set([...pointEdits, HOLD].map(({ file }) => file))]

describe('the points at which faults happen', () => {
  it.each(files)('have their places in %s, which still parses with them', (file) => {
    const points = [...pointEdits, HOLD].filter((edit) => edit.file === file)
    const code = stripTypeScriptTypes(instrumentText(text(file), [], points))
    expect(code.split('globalThis.__').length - 1).toBe(points.length)
  })

  it('fit into the controls of a process', () => {
    expect(POINTS.length).toBeLessThanOrEqual(64)
    expect(new Set(POINTS).size).toBe(POINTS.length)
  })

  it.each<[string, Edit[], Edit[]]>([
    ['is missing', [], [{ file: 'a.ts', find: 'three', replace: '' }]],
    ['is there twice', [], [{ file: 'a.ts', find: 'one', replace: '' }]],
    ['of a plant is missing', [{ file: 'a.ts', find: 'three', replace: '' }], []],
  ])('refuse a source in which a place %s', (_, plants, points) => {
    expect(() => instrumentText('one two one', plants, points)).toThrow(/a\.ts has \d times/)
  })

  it('give way to a plant that takes their place', () => {
    const edit = { file: 'a.ts', find: 'two', replace: '2' }
    expect(instrumentText('one two', [edit], [{ ...edit, replace: 'point two' }])).toBe('one 2')
  })
})

describe('the planted bugs', () => {
  it.each(BUGS)('$name', ({ edits }) => {
    const prepared = preparePlants(edits)
    expect(prepared.edits.length + prepared.sql.length).toBeGreaterThan(0)
    for (const { file, ...edit } of prepared.edits)
      expect(stripTypeScriptTypes(instrumentText(text(file), [{ file, ...edit }], []))).not.toBe(text(file))
  })
})
