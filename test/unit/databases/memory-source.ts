import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  type Changes,
  PAGE_BYTES,
  type PageSource,
  type Store,
} from '../../../domain/session-data/databases/sqlite-runner/sqlite-runner.ts'

/** A database's record in memory. */
export type MemorySource = PageSource & {
  pages: Map<number, { version: number; bytes: Uint8Array }>
  version: number
  pageCount: number
  isGone: boolean
  /** Versions that were asked for. */
  reads: number[]
  stored: Changes[]
  store: Store
  /** Returns the file of the database, made of the record alone. */
  toFile(): Uint8Array
}

const BATCH = 300

export function createMemorySource(): MemorySource {
  const source: MemorySource = {
    id: randomUUID(),
    pages: new Map(),
    ...{ version: 0, pageCount: 0, isGone: false, reads: [], stored: [] },
    read: async (since) => {
      source.reads.push(since)
      if (source.isGone) return undefined
      const { version, pageCount } = source
      return { version, pageCount, pages: readPages(source, since) }
    },
    store: async (changes) => {
      source.stored.push(changes)
      if (source.isGone) return 'gone'
      if (changes.numbers.length === 0) return 'stored'
      if (changes.version !== source.version) return 'conflict'
      source.version++
      source.pageCount = changes.pageCount
      for (const [index, number] of changes.numbers.entries()) {
        const bytes = changes.bytes.slice(index * PAGE_BYTES, (index + 1) * PAGE_BYTES)
        source.pages.set(number, { version: source.version, bytes })
      }
      return 'stored'
    },
    toFile: () => {
      const file = new Uint8Array(source.pageCount * PAGE_BYTES)
      for (const [number, { bytes }] of source.pages) file.set(bytes, (number - 1) * PAGE_BYTES)
      return file
    },
  }
  return source
}

async function* readPages({ pages }: MemorySource, since: number) {
  const changed = [...pages].filter(([, { version }]) => version > since).sort(([one], [other]) => one - other)
  for (let at = 0; at < changed.length; at += BATCH) {
    const batch = changed.slice(at, at + BATCH)
    yield { numbers: batch.map(([number]) => number), bytes: Buffer.concat(batch.map(([, { bytes }]) => bytes)) }
  }
}

/** Reads everything that is in a database, after SQLite has checked it. */
export function dump(db: DatabaseSync): unknown {
  const schema = db
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE name <> 'sqlite_stat1' ORDER BY name")
    .all()
  const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => String(name))
  const rows = tables.map((name) => db.prepare(`SELECT * FROM "${name}"`).all())
  return { check: db.prepare('PRAGMA integrity_check').all(), schema, rows }
}

/** Reads everything that is in the record. */
export function dumpSource(source: MemorySource): unknown {
  const folder = mkdtempSync(join(tmpdir(), 'sqlite-runner-test-'))
  try {
    writeFileSync(join(folder, 'x.db'), source.toFile())
    const db = new DatabaseSync(join(folder, 'x.db'))
    try {
      return dump(db)
    } finally {
      db.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
