import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Deps } from '../../domain/deps.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import { createSession } from '../../domain/sessions/create.ts'
import { ANYBODY } from '../support/by-hand.ts'
import { countOf } from '../support/counts.ts'
import { leastLiveBytes, liveBytes, toMegabytes } from '../support/heap.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'

const WAYS = ['events', 'sse']
const SHORT = 10_000
const LONG = countOf('longHistory')
const TURN_EVENTS = 100
/** Turns with a model call, which contains the conversation up to it. Both histories have the same ones. */
const GENERATIONS = [1, 30, 90]
/** Measurements during a reading, beside the one at its beginning. */
const LOOKS = 2
const SLOW_AT_FIRST_MS = 300
/** Limit that allows for some megabytes in transit and garbage. The text of an event would add some 600 bytes. */
const MAX_GROWTH_BYTES = LONG * 450
/** Time after which everything that may be read ahead for a client has been read. */
const PILING_UP_MS = 3000
/** Size of one or two pages of the record and their parsed form. */
const MAX_PILED_UP_BYTES = 8 * 1024 * 1024

let service: TestService
let short: string
let long: string
beforeAll(async () => {
  service = await startService({ worker: false })
  short = await createHistory(service.platform.deps, SHORT)
  long = await createHistory(service.platform.deps, LONG)
  // Warm up, so that what a process loads for its first reader does not count.
  for (const what of WAYS) await readAll(`/v1/sessions/${short}/${what}`, SHORT, () => 0)
})
afterAll(() => service.stop())

/** Creates a session of finished turns, each with a message, an answer in deltas, and the events around them. */
async function createHistory(deps: Deps, length: number): Promise<string> {
  const actor = ANYBODY
  const { id } = await createSession(deps, actor, {})
  const uuid = toUuid(id)
  const turns = Array.from({ length: length / TURN_EVENTS }, newUuid)
  await deps.db.$executeRaw`
    INSERT INTO turns (id, organization_id, session_id, input_sequence, status, started_at, finished_at)
    SELECT turn.id, ${actor.organizationId}::uuid, ${uuid}::uuid, (turn.place - 1) * ${TURN_EVENTS}::int + 1,
      'completed', now(), now()
    FROM unnest(${turns}::uuid[]) WITH ORDINALITY AS turn (id, place)`
  await deps.db.$executeRaw`
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    SELECT ${uuid}::uuid, turn.input_sequence + place, event.type, now(), turn.id,
      CASE WHEN place BETWEEN 3 AND 97 THEN 'reason:1' ELSE '' END, md5(turn.id::text)::uuid,
      jsonb_build_object('turn_id', 'turn_' || replace(turn.id::text, '-', ''), 'harness_id', 'harness_' || md5(turn.id::text),
        'input_message_id', 'message_' || replace(turn.id::text, '-', '')) || event.data::jsonb
    FROM turns turn CROSS JOIN generate_series(0, ${TURN_EVENTS}::int - 1) AS place
    CROSS JOIN LATERAL (SELECT * FROM (VALUES
      (0, 'input.message', jsonb_build_object('message', jsonb_build_object('id', 'message_' || replace(turn.id::text, '-', ''),
        'role', 'user', 'content', jsonb_build_array(jsonb_build_object('type', 'text', 'text', 'Go on with the story.'))))),
      (1, 'session.activated', '{}'),
      (2, 'turn.started', '{"input_content": "Go on with the story."}'),
      (3, 'reason.started', '{}'),
      (4, 'output.message.started', '{"model": "by-hand"}'),
      (95, CASE WHEN turn.input_sequence / ${TURN_EVENTS}::int = ANY (${GENERATIONS}::int[])
        THEN 'llm.generation' ELSE 'reason.thinking.completed' END,
        '{"thinking": "Hm.", "output": {"text": "a word "}, "metadata": {"model": "by-hand", "success": true}}'),
      (96, 'output.message.completed', jsonb_build_object('message', jsonb_build_object('id', 'message_' || md5(turn.id::text),
        'role', 'agent', 'content', jsonb_build_array(jsonb_build_object('type', 'text', 'text', repeat('a word ', 90)))))),
      (97, 'reason.completed', '{"success": true, "has_tool_calls": false, "tool_call_count": 0}'),
      (98, 'turn.completed', '{"iterations": 1}'),
      (99, 'session.idled', '{}')
    ) AS special (at, type, data)
    WHERE special.at = place
    UNION ALL
    SELECT place, 'output.message.delta', '{"delta": "a word "}'
    WHERE place BETWEEN 5 AND 94) AS event (at, type, data)
    WHERE turn.session_id = ${uuid}::uuid`
  await deps.db.session.update({ where: { id: uuid }, data: { lastSequence: length } })
  return id
}

const open = (path: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request(service.url + path, { agent: false }, resolve)
      .on('error', reject)
      .end()
  })

/** Reads `length` events and keeps none. Returns the most memory that was alive meanwhile. */
async function readAll(path: string, length: number, measure = liveBytes): Promise<number> {
  const answer = await open(path)
  answer.setEncoding('latin1')
  let [rest, seen, lastId, mostBytes] = ['', 0, '', 0]
  for await (const chunk of answer) {
    if (seen === 0) await sleep(SLOW_AT_FIRST_MS)
    const text = rest + chunk
    const found = [...text.matchAll(/"id":"(event_\w{32})"/g)]
    // Keep what may be the beginning of another id, but no complete id.
    const last = found.at(-1)
    rest = text.slice(Math.max(last ? last.index + last[0].length : 0, text.length - 50))
    const before = seen
    for (const [, id = ''] of found) {
      if (id <= lastId) throw new Error(`${id} came after ${lastId}`)
      lastId = id
      seen++
    }
    const step = length / LOOKS
    if (Math.floor(before / step) < Math.floor(seen / step) || before === 0) mostBytes = Math.max(mostBytes, measure())
    if (seen >= length) break
  }
  answer.destroy()
  expect(seen).toBe(length)
  return mostBytes
}

describe(`a history of ${LONG} events`, () => {
  it.each(WAYS)(`is read whole through %s with the memory of one of ${SHORT}`, async (what) => {
    const path = (id: string) => `/v1/sessions/${id}/${what}`
    const shortBytes = await readAll(path(short), SHORT)
    const longBytes = await readAll(path(long), LONG)
    process.stdout.write(
      `${what}: ${toMegabytes(shortBytes)} alive for ${SHORT}, ${toMegabytes(longBytes)} for ${LONG}\n`,
    )
    expect(longBytes - shortBytes).toBeLessThan(MAX_GROWTH_BYTES)
  })

  it('is not read further for a client that reads nothing of its stream', async () => {
    const before = await leastLiveBytes()
    const answer = await open(`/v1/sessions/${long}/sse`)
    await sleep(PILING_UP_MS)
    const first = await leastLiveBytes()
    await sleep(PILING_UP_MS)
    const second = await leastLiveBytes()
    const grownBytes = second - before
    process.stdout.write(`sse: ${toMegabytes(grownBytes)} alive for a client that reads nothing of ${LONG}\n`)
    expect(grownBytes).toBeLessThan(MAX_PILED_UP_BYTES)
    expect(second - first).toBeLessThan(MAX_PILED_UP_BYTES / 4)
    answer.destroy()
  })
})
