import { sleep } from '@temporalio/workflow'

/** Waits before its first step, which no recorded turn does. A replay must detect it. */
export async function turn(): Promise<string> {
  await sleep('1 second')
  return 'completed'
}

export { turn as execution, turn as launch, turn as retention, turn as webhook }
