import { proxyActivities, proxySinks, type Sinks } from '@temporalio/workflow'

export interface DoneSinks extends Sinks {
  bench: { done(id: string): void }
}

const { answer } = proxyActivities<{ answer(id: string): Promise<void> }>({ startToCloseTimeout: '1 minute' })
const { bench } = proxySinks<DoneSinks>()

/** The least that a durable turn can be: start, one workflow task, one activity, one workflow task. */
export async function floor(id: string): Promise<void> {
  await answer(id)
  bench.done(id)
}
