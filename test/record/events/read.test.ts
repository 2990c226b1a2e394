import { expandGenerations } from '../../../domain/conversation/expand-generations.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { NewEvent, Writer } from '../../../domain/events/log/append.ts'
import { createEventReader, type EventLine } from '../../../domain/events/read/read.ts'
import { newUuid, toId } from '../../../domain/kit/ids.ts'
import { append, createAnswer, createOpenTurn } from '../../support/by-hand.ts'
import { type Json, listEvents } from '../../support/http.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())

/** Reads page by page, repeating a page that fails. */
async function readPages(from: Deps, { sessionId }: Writer, batch: number, after = 0): Promise<EventLine[][]> {
  const read = createEventReader(from, sessionId, { expand: expandGenerations, batch, ahead: batch > 1 })
  const pages: EventLine[][] = []
  for (let hasMore = true, cursor = after; hasMore; ) {
    const page = await read(cursor).catch(() => read(cursor))
    pages.push(page.events)
    hasMore = page.hasMore
    cursor = page.through ?? cursor
  }
  return pages
}

/** Returns the `accumulated` text of each delta, and the text expected from the deltas before it. */
function textsOf(events: Json[]): { seen: string[]; expected: string[] } {
  const texts = new Map<string, string>()
  const deltas = events.filter(({ type }) => type.endsWith('.delta'))
  const expected = deltas.map(({ type, data, context }) => {
    const key = `${type} ${context.exec_id}`
    texts.set(key, (texts.get(key) ?? '') + data.delta)
    return texts.get(key) ?? ''
  })
  return { seen: deltas.map(({ data }) => data.accumulated), expected }
}

/** Returns whether a query reads the conversation. Its SQL is composed of parts, so it is among the values. */
const isOfConversation = (given: unknown[]): boolean => JSON.stringify(given).includes('bytes_behind')

const parse = (events: EventLine[]): Json[] => events.map(({ line }) => JSON.parse(line))

/** Creates a message that is started twice and completed, and another one, with the events that led to them. */
async function createAnswers(): Promise<Writer> {
  const { writer } = await createOpenTurn(deps)
  const attempt = (step: string, ...texts: string[]): NewEvent[] => {
    const own = { step, execId: newUuid() }
    const thoughts = texts.map(
      (text): NewEvent => ({ ...own, type: 'reason.thinking.delta', data: { delta: `(${text})` } }),
    )
    const deltas = texts.map((text): NewEvent => ({ ...own, type: 'output.message.delta', data: { delta: text } }))
    return [{ ...own, type: 'output.message.started', data: { model: 'by-hand' } }, ...thoughts, ...deltas]
  }
  const completed = (step: string, text: string): NewEvent[] => {
    const message = { id: toId('message', newUuid()), role: 'agent', content: [{ type: 'text', text }] }
    const metadata = { model: 'by-hand', success: true }
    return [
      { type: 'llm.generation', step, data: { output: { text }, metadata } },
      { type: 'output.message.completed', step, data: { message } },
    ]
  }
  await append(deps, writer, [
    ...attempt('reason:1', 'one ', 'two '),
    ...attempt('reason:1', 'one ', 'two ', 'three '),
    ...completed('reason:1', 'one two three '),
    ...attempt('reason:2', 'four ', 'five '),
    ...completed('reason:2', 'four five '),
    ...attempt('reason:3', 'six ', 'seven '),
  ])
  return writer
}

describe('pages of the record', () => {
  it.each([1, 3, 500])('have each message with its own text, even if started twice: %i at a time', async (batch) => {
    const writer = await createAnswers()
    const whole = parse((await readPages(deps, writer, 500)).flat())
    expect(whole.map(({ sequence }) => sequence)).toEqual(whole.map((_, index) => index + 1))
    const { seen, expected } = textsOf(whole)
    expect(seen).toEqual(expected)
    for (const after of [0, 3, 4, 9, 12, 15, 17]) {
      expect(parse((await readPages(deps, writer, batch, after)).flat())).toEqual(whole.slice(after))
    }
  })

  it.each([2, 3, 6])('are complete and unique when a model call could not be read at first: %i', async (batch) => {
    const writer = await createAnswers()
    const whole = (await readPages(deps, writer, batch)).flat()
    let failures = 0
    const $queryRaw = (...given: Parameters<typeof deps.db.$queryRaw>) => {
      if (isOfConversation(given) && failures++ % 2 === 0)
        return Promise.reject(new Error('the record failed as asked'))
      return deps.db.$queryRaw(...given)
    }
    const db = Object.create(deps.db, { $queryRaw: { value: $queryRaw } })
    expect((await readPages({ ...deps, db }, writer, batch)).flat()).toEqual(whole)
    expect(failures).toBeGreaterThan(1)
  })

  it('keep their size limit when events are larger than they are stored', async () => {
    const { id, writer } = await createOpenTurn(deps)
    const answer = createAnswer()
    const more = Array.from({ length: 200 }, () => answer.delta('more '))
    await append(deps, writer, [answer.start(), answer.delta('x'.repeat(30_000)), ...more])
    const sizes = (await readPages(deps, writer, 200)).map((page) =>
      page.reduce((sum, { line }) => sum + line.length, 0),
    )
    const longest = Math.max(...(await listEvents(service.url, id)).map((event) => JSON.stringify(event).length))
    const PAGE_BYTES = 256 * 1024
    expect(Math.max(...sizes)).toBeLessThanOrEqual(PAGE_BYTES + longest)
    // A page may be small only if no more events follow.
    expect(sizes.filter((size) => size < PAGE_BYTES / 2).length).toBeLessThanOrEqual(3)
  })
})
