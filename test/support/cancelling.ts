import { type Json, listEvents, type Target, waitFor } from './http.ts'
import { eventsOfTurn, expectSoundRecord, typesOf } from './record.ts'
import { openStream } from './stream.ts'
import { type TemporalPlace, withClient } from './temporal.ts'
import { cancel } from './turns.ts'

/**
 * Cancels a session's turns and returns the session's events. Expects the record to be complete when the request is
 * answered, and an open stream to catch up.
 */
export async function cancelAtOnce(target: Target, id: string, body?: object): Promise<Json[]> {
  const before = (await listEvents(target, id)).length
  const stream = await openStream(target, `/v1/sessions/${id}/sse`)
  const startedAt = performance.now()
  const answer = await cancel(target, id, body)
  expect([answer.status, answer.body]).toEqual([
    200,
    { status: 'cancelled', message: expect.stringMatching(/cancelled/) },
  ])
  const events = await listEvents(target, id)
  await stream.until((frame) => frame.event === 'session.idled' && frame.data.sequence > before)
  const tookMs = Math.round(performance.now() - startedAt)
  process.stdout.write(`${expect.getState().currentTestName}: ${tookMs} ms\n`)
  expectSoundRecord(events)
  expect(events.at(-1).type).toBe('session.idled')
  expect(stream.events()).toEqual(events)
  stream.close()
  return events
}

/** Returns the types of a turn's last `count` events, which its cancellation wrote. */
export function typesAtEnd(events: Json[], turnId: string, count: number): string[] {
  return typesOf(eventsOfTurn(events, turnId)).slice(-count)
}

/** Waits until a turn's workflow has ended. Returns its status name. */
export const workflowEnd = (service: TemporalPlace, turnId: string): Promise<string> =>
  withClient(service, (client) =>
    waitFor(async () => {
      const { status } = await client.workflow.getHandle(turnId).describe()
      return status.name !== 'RUNNING' && status.name
    }, `the workflow of ${turnId} to end`),
  )
