/** Tools that take long: a workflow may wait for days, and survives its worker. */
import { sleep } from '@temporalio/workflow'

export async function ship_order({ order, seconds }: { order: string; seconds: number }) {
  await sleep(seconds * 1000)
  return { order, shipped: true }
}
