import { hash } from 'node:crypto'
import type { Deps } from '../../../domain/deps.ts'
import { call, createScriptedSession, waitUntilIdle } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { createLab } from '../../support/lab.ts'
import { startService, type TestService } from '../../support/service.ts'
import { openStream } from '../../support/stream.ts'
import { post } from '../../support/turns.ts'

/** Number of model calls that call a tool. One more answers. */
const ROUNDS = 40
/** Returns incompressible text. */
const noise = (what: string): string => hash('sha512', what, 'base64')
const STEPS = Array.from({ length: ROUNDS }, (_, round) => ({
  text: noise(`text ${round}`),
  tool_calls: [{ id: `call-${round + 100}`, name: 'echo', arguments: { text: noise(`argument ${round}`) } }],
}))

let service: TestService
let deps: Deps
let url: string
beforeAll(async () => {
  const { capability } = createLab()
  // The descriptions of all lab tools are so large that Postgres would compress them as soon as a little is added.
  const tools = capability.tools.filter(({ name }) => name === 'echo')
  service = await startService({ capabilities: [{ ...capability, tools }] })
  deps = service.platform.deps
  url = service.url
})
afterAll(() => service.stop())

/** Returns the bytes that Postgres stores for the first and the second half of the rounds. */
async function storedBytes(id: string, types: string): Promise<number[]> {
  const rows = await deps.db.$queryRaw<{ bytes: number }[]>`
    SELECT sum(pg_column_size(data))::int AS bytes
    FROM events CROSS JOIN LATERAL (SELECT split_part(step, ':', 2)::int AS round) AS place
    WHERE session_id = ${toUuid(id)}::uuid AND type LIKE ${types} AND step <> '' AND round <= ${ROUNDS}::int
    GROUP BY round > ${ROUNDS / 2}::int ORDER BY min(round)`
  return rows.map(({ bytes }) => bytes)
}

describe('a turn of many model calls', () => {
  it('stores no more for late calls than for early ones, and shows the whole input of each', async () => {
    const id = await createScriptedSession(url, [...STEPS, { text: 'done' }], { capabilities: [{ ref: 'lab' }] })
    const live = await openStream(url, `/v1/sessions/${id}/sse`)
    await post(url, id)
    const events = await waitUntilIdle(url, id)
    for (const types of ['llm.generation', '%']) {
      const [early = 0, late] = await storedBytes(id, types)
      expect(late).toBeLessThan(early * 1.05)
    }

    const { data: messages } = (await call(url, 'GET', `/v1/sessions/${id}/messages?limit=100`)).body
    expect(messages).toHaveLength(2 * ROUNDS + 2)
    const generations = events.filter(({ type }) => type === 'llm.generation')
    expect(generations).toHaveLength(ROUNDS + 1)
    for (const [round, { data }] of generations.entries()) {
      expect(data.messages).toEqual(messages.slice(0, 2 * round + 1))
    }

    // Events that the stream delivered while the calls ran, before anything was read.
    await live.until((frame) => frame.event === 'session.idled')
    live.close()
    expect(live.events()).toEqual(events)
  })
})
