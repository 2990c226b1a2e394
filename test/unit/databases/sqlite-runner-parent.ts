import { subscribe } from 'node:diagnostics_channel'
import { createSqliteRunner } from '../../../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import { createMemorySource } from './memory-source.ts'
import { ENDLESS, type Forked } from './processes.ts'

/** Program that is killed while its SQLite runner runs a query without end. It tells the id of the SQLite runner's process. */

const signal = new AbortController().signal
const runner = createSqliteRunner()
const source = createMemorySource()
subscribe('child_process', (message) => {
  const { process: child } = message as Forked
  child.once('spawn', () => process.send?.(child.pid))
})
await runner.query(source, { sql: ENDLESS }, {}, signal)
