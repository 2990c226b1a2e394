import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Audit, findShipped, isAllowed, judgeAudit, licenceProblems } from '../../../scripts/dependencies.ts'
import { licencesOf, missingLicences } from '../../../scripts/licenses.ts'

const root = path.join(import.meta.dirname, '../../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

describe('the licence of a package that ships', () => {
  it.each([
    ['MIT', true],
    ['(MIT OR GPL-3.0-or-later)', true],
    ['Apache-2.0 AND MIT', true],
    ['MIT AND (GPL-2.0-only OR ISC)', true],
    ['Apache-2.0 AND LGPL-3.0-or-later', false],
    ['MIT AND (GPL-2.0-only OR AGPL-3.0-only)', false],
    ['GPL-3.0-only', false],
    ['SEE LICENSE IN LICENSE', false],
    ['none', false],
    ['', false],
  ])('%j may be kept: %s', (expression, isKept) => {
    expect(isAllowed(expression)).toBe(isKept)
  })

  it('is looked up for the packages of the image and of bundles, but not for other systems and development', () => {
    const packages = {
      '': { dependencies: { a: '1' } },
      'node_modules/a': { license: 'MIT', dependencies: { b: '1', 'b-darwin': '1', 'b-musl': '1' } },
      'node_modules/b': { license: 'GPL-3.0-only' },
      'node_modules/b-darwin': { license: 'GPL-3.0-only', os: ['darwin'] },
      'node_modules/b-musl': { license: 'GPL-3.0-only', libc: ['musl'] },
      'node_modules/bundled': {},
      'node_modules/tool': { license: 'GPL-3.0-only' },
    }
    const shipped = findShipped(packages, ['bundled'])
    expect(shipped).toEqual(['node_modules/a', 'node_modules/b', 'node_modules/bundled'])
    expect(licenceProblems(packages, shipped)).toEqual([
      expect.stringMatching(/^b ships under the licence GPL-3.0-only; /),
      expect.stringMatching(/^bundled ships under the licence none; /),
    ])
  })
})

describe('a known vulnerability', () => {
  const advisory = (severity: string, id: string) => ({
    url: `https://github.com/advisories/${id}`,
    title: 'A hole',
    severity,
    range: '<2.0.0',
  })
  const audit: Audit = {
    vulnerabilities: {
      a: { nodes: ['node_modules/a'], via: [advisory('high', 'GHSA-aaaa-aaaa-aaaa'), advisory('low', 'GHSA-bbbb')] },
      b: { nodes: ['node_modules/b'], via: ['a'] },
      tool: { nodes: ['node_modules/tool'], via: [advisory('critical', 'GHSA-cccc')] },
      twice: {
        nodes: ['node_modules/tool/node_modules/twice', 'node_modules/twice'],
        via: [advisory('critical', 'GHSA-dddd')],
      },
    },
  }
  const shipped = ['node_modules/a', 'node_modules/b', 'node_modules/twice']

  it('fails the check where it is severe and ships, and is told otherwise', () => {
    const { failing, told } = judgeAudit(audit, shipped, {}, '2026-11-27')
    expect(failing.map((line) => /GHSA-\w+/.exec(line)?.[0])).toEqual(['GHSA-aaaa', 'GHSA-dddd'])
    expect(told).toEqual(['a (<2.0.0): low, A hole, https://github.com/advisories/GHSA-bbbb'])
  })

  it.each([
    ['2026-11-27', 1],
    ['2026-11-26', 2],
  ] as const)('is left until the end of %s, with the reason', (until, count) => {
    const exceptions = { 'GHSA-aaaa-aaaa-aaaa': { why: 'not called here', until } }
    const { failing, told } = judgeAudit(audit, shipped, exceptions, '2026-11-27')
    expect(failing).toHaveLength(count)
    expect(told.some((line) => line.endsWith('not called here'))).toBe(count === 1)
  })

  it('is not said to be absent when the registry cannot be asked', async () => {
    const env = { ...process.env, npm_config_registry: 'http://127.0.0.1:9/', npm_config_offline: 'true' }
    const args = ['--disable-warning=ExperimentalWarning', 'scripts/dependencies.ts']
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env })
    expect(stdout).toMatch(/^Known vulnerabilities: could not ask the registry \(.+\), so nothing is known of them\.$/m)
    expect(stdout).toMatch(
      /^[1-9]\d* packages ship; 0 licences and an unknown number of vulnerabilities are in the way$/m,
    )
  })
})

describe('the licences of what is bundled', () => {
  it('go with the console, whose page names their file', () => {
    const file = readdirSync(path.join(root, 'console/dist')).find((name) => /^licenses-\w{8}\.txt$/.test(name)) ?? ''
    for (const text of [/^preact \d.*: MIT\n\n[\s\S]*?Permission is hereby granted/m, /^htm .*: Apache-2.0$/m])
      expect(read(`console/dist/${file}`)).toMatch(text)
    expect(JSON.parse(read('console/dist/manifest.json')).licences).toBe(file)
  })

  it.each(['client/dist/browser.js', 'embed/dist/embed.js'])('begin %s', (file) => {
    expect(read(file)).toMatch(
      /^\/\*!\neventsource-parser \d.*: MIT\n[\s\S]*?Permission is hereby granted[\s\S]*?\*\/\n/,
    )
  })

  it('are complete', () => {
    const inputs = { '../node_modules/@preact/signals/dist/x.js': {}, 'node_modules/koa-compose/index.js': {} } as never
    expect(() => licencesOf({ inputs })).toThrow('node_modules/koa-compose has no file with its licence')
  })

  it('are added for packages of the image that bring none', () => {
    expect(missingLicences()).toMatch(
      /^koa-compose [\d.]+: MIT\n\nCopyright \(c\) [\s\S]*?Permission is hereby granted/m,
    )
  })
})
