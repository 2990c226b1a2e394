import { proxyActivities } from '@temporalio/workflow'

const { answer } = proxyActivities<{ answer(id: string): Promise<void> }>({ startToCloseTimeout: '1 minute' })

/** Minimal durable turn: start, one workflow task, one activity, one workflow task. */
export async function floor(id: string): Promise<void> {
  await answer(id)
}

/** Minimal workflow of a schedule: one workflow task. */
export async function tick(): Promise<void> {}
