import { subscribe } from 'node:diagnostics_channel'
import { createKeeper } from '../../../domain/session-data/databases/keeper/create-keeper.ts'
import { createMemorySource } from './memory-source.ts'
import { ENDLESS, type Forked } from './processes.ts'

/** Program that is killed while its keeper runs a query without end. It tells the id of the keeper's process. */

const signal = new AbortController().signal
const keeper = createKeeper()
const source = createMemorySource()
subscribe('child_process', (message) => {
  const { process: child } = message as Forked
  child.once('spawn', () => process.send?.(child.pid))
})
await keeper.query(source, { sql: ENDLESS }, {}, signal)
