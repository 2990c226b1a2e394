import { readdir } from 'node:fs/promises'
import { applyMigrations, diffMigration } from '../../platform/migrate.ts'
import { createEmptyDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
beforeEach(async () => {
  database = await createEmptyDatabase()
})
afterEach(() => database.drop())

describe('the migrations', () => {
  it('make the database that prisma/schema.prisma describes', async () => {
    expect(await diffMigration(database.url)).toBe('-- This is an empty migration.\n')
  })

  it('are applied once, also by processes that start at once', async () => {
    const applied = await Promise.all([1, 2, 3].map(() => applyMigrations(database.url)))
    const names = (await readdir('prisma/migrations')).filter((name) => /^\d/.test(name))
    expect(applied.flat().sort()).toEqual(names.sort())
    expect(await applyMigrations(database.url)).toEqual([])
  })
})
