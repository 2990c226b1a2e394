import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow'

type Activities = { answer(id: string): Promise<void> }
const { answer } = proxyActivities<Activities>({ startToCloseTimeout: '1 minute' })
const local = proxyLocalActivities<Activities>({ startToCloseTimeout: '1 minute' })

/** Minimal durable turn: start, one workflow task, one activity, one workflow task. */
export async function floor(id: string): Promise<void> {
  await answer(id)
}

/** Minimal durable turn whose activity runs within the workflow task: start and one workflow task. */
export async function localFloor(id: string): Promise<void> {
  await local.answer(id)
}

/** Minimal workflow of a schedule: one workflow task. */
export async function tick(): Promise<void> {}
