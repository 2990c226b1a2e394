import type { Keeper } from './keeper.ts'

export type KeeperOptions = {
  /** Time for a call in a process. */
  jobMs?: number
}

/** Creates a keeper, whose processes and folder appear when they are needed. Close it at the end. */
export function createKeeper(_options: KeeperOptions = {}): Keeper {
  throw new Error('not yet')
}
