import { sleep } from '@temporalio/workflow'

/** Waits before its first step, which no history of a turn does: a replay has to notice. */
export async function turn(): Promise<string> {
  await sleep('1 second')
  return 'completed'
}

export { turn as retention }
