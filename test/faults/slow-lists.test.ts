import { randomBytes } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContentPart } from '../../contract/messages.ts'
import { expandGenerations } from '../../domain/conversation/expand-generations.ts'
import { readConversation, withoutImages } from '../../domain/conversation/read.ts'
import type { Deps } from '../../domain/deps.ts'
import { type ListOptions, listEvents } from '../../domain/events/read/list.ts'
import { newUuid, toId } from '../../domain/kit/ids.ts'
import { createSession } from '../../domain/sessions/create.ts'
import { loadTurn } from '../../domain/turns/run/turn-context.ts'
import { ANYBODY } from '../support/by-hand.ts'
import { countOf } from '../support/counts.ts'
import { leastLiveBytes, toMegabytes } from '../support/heap.ts'
import { call, type Json } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'

const CLIENTS = 5
const LARGE = countOf('largeItems')
const LARGE_BYTES = 2_000_000
/** Time after which everything that may be held for a client is held. */
const PILING_UP_MS = 2000
/** Several times the size of a large message. A page limited only by count would hold all of them. */
const MAX_CLIENT_BYTES = 16 * 1024 * 1024

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())

/** Returns incompressible text. */
const noise = (bytes: number): string => randomBytes((bytes * 3) / 4).toString('base64')
const text = (text: string): ContentPart[] => [{ type: 'text', text }]
const image = (bytes: number): ContentPart => ({ type: 'image', base64: noise(bytes), media_type: 'image/png' })

type History = { id: string; sessionId: string; turnIds: string[] }

/** Creates a session of finished turns with one message each. */
async function createHistory(length: number, contentOf: (turn: number) => ContentPart[]): Promise<History> {
  const { id } = await createSession(deps, ANYBODY, {})
  const sessionId = toUuid(id)
  const turnIds = Array.from({ length }, newUuid)
  const finished = { organizationId: ANYBODY.organizationId, sessionId, status: 'completed', finishedAt: new Date() }
  await deps.db.turn.createMany({
    data: turnIds.map((id, turn) => ({ ...finished, status: 'completed', id, inputSequence: turn + 1 })),
  })
  for (const [turn, turnId] of turnIds.entries()) {
    const message = { id: toId('message', turnId), role: 'user', content: contentOf(turn) }
    await addEvent({ sessionId, sequence: turn + 1, turnId, type: 'input.message', data: { message } })
  }
  return { id, sessionId, turnIds }
}

type Added = { sessionId: string; sequence: number; turnId: string; type: string; step?: string; data: object }

async function addEvent({ data, ...event }: Added): Promise<void> {
  const { sessionId, sequence } = event
  await deps.db.event.create({ data: { ...event, ts: new Date(), execId: newUuid(), data: data as Json } })
  await deps.db.session.update({ where: { id: sessionId }, data: { lastSequence: sequence } })
}

/** Requests a list without reading the answer. */
const openList = (path: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request(service.url + path, { agent: false }, resolve)
      .on('error', reject)
      .end()
  })

/** Measures the memory that stays alive for each of several clients that read nothing. */
async function bytesOfUnread(path: string): Promise<{ bytes: number; answers: IncomingMessage[] }> {
  const before = await leastLiveBytes()
  const answers = await Promise.all(Array.from({ length: CLIENTS }, () => openList(path)))
  await sleep(PILING_UP_MS)
  const bytes = ((await leastLiveBytes()) - before) / CLIENTS
  process.stdout.write(`${path.split('?')[0]}: ${toMegabytes(bytes)} for each client that does not read\n`)
  return { bytes, answers }
}

/** Reads the first client's answer and closes the others. */
async function readFirst([first, ...others]: IncomingMessage[]): Promise<Json[]> {
  for (const other of others) other.destroy()
  return ((await json(first as IncomingMessage)) as Json).data
}

const sequences = (messages: Json[]): number[] => messages.map(({ sequence }) => sequence)
const upTo = (length: number): number[] => Array.from({ length }, (_, index) => index + 1)

describe('clients that do not read a list', () => {
  it.each([
    ['that cannot be compressed', noise(LARGE_BYTES)],
    ['that are stored much smaller', 'x'.repeat(LARGE_BYTES)],
  ])('hold little more than one message each, of messages %s', async (_, content) => {
    const { id } = await createHistory(LARGE, () => text(content))
    const { bytes, answers } = await bytesOfUnread(`/v1/sessions/${id}/messages`)
    expect(sequences(await readFirst(answers))).toEqual(upTo(LARGE))
    expect(bytes).toBeLessThan(MAX_CLIENT_BYTES)
  })

  it('hold little more than one agent each', async () => {
    const { organizationId } = ANYBODY
    const ids = Array.from({ length: LARGE }, newUuid)
    const systemPrompt = noise(LARGE_BYTES)
    for (const id of ids)
      await deps.db.agent.create({ data: { id, organizationId, name: 'Large agent', systemPrompt } })
    const { bytes, answers } = await bytesOfUnread('/v1/agents?search=LARGE%20AGENT')
    const listed = await readFirst(answers)
    expect(new Set(listed.map((agent) => agent.id))).toEqual(new Set(ids.map((id) => toId('agent', id))))
    expect(listed).toHaveLength(LARGE)
    expect(bytes).toBeLessThan(MAX_CLIENT_BYTES)
  })
})

describe('a list of messages of all sizes', () => {
  it.each(['asc', 'desc'])('has each message once, in order, up to the limit: %s', async (order) => {
    const length = 70
    const { id } = await createHistory(length, (turn) => text('x'.repeat(turn % 7 === 3 ? 300_000 : turn * 1000)))
    const all = order === 'asc' ? upTo(length) : upTo(length).reverse()
    const read = async (query: string) =>
      sequences((await call(service.url, 'GET', `/v1/sessions/${id}/messages?order=${order}${query}`)).body.data)
    expect(await read('')).toEqual(all)
    expect(await read('&offset=999999999999999')).toEqual([])
    for (const offset of [0, 3, 19, 65]) {
      for (const limit of [1, 4, 20, 21]) {
        expect(await read(`&offset=${offset}&limit=${limit}`)).toEqual(all.slice(offset, offset + limit))
      }
    }
  })
})

describe('a session that is deleted while it is listed', () => {
  it.each(['events', 'messages'])('ends with an aborted answer: %s', async (what) => {
    const { id } = await createHistory(LARGE, () => text(noise(LARGE_BYTES)))
    const answer = await openList(`/v1/sessions/${id}/${what}`)
    await sleep(PILING_UP_MS)
    expect((await call(service.url, 'DELETE', `/v1/sessions/${id}`)).status).toBe(204)
    await expect(json(answer)).rejects.toThrow('aborted')
  })
})

/** Returns the same dependencies with a counter of the bytes that their queries return. */
function countBytes(): { counted: Deps; bytes: () => number } {
  let bytes = 0
  const db = deps.db.$extends({
    query: {
      $allOperations: async ({ args, query }) => {
        const found = await query(args)
        bytes += JSON.stringify(found, (_, value) => (typeof value === 'bigint' ? String(value) : value)).length
        return found
      },
    },
  })
  return { counted: { ...deps, db: db as unknown as Deps['db'] }, bytes: () => bytes }
}

const generation = { tools: [], output: { text: 'Nice.' }, metadata: { model: 'by-hand', success: true } }

const GENERATIONS = { filter: { types: ['llm.generation'] }, expand: expandGenerations } satisfies ListOptions

async function messagesOfCall(deps: Deps, sessionId: string): Promise<Json[]> {
  const lines: string[] = []
  for await (const page of listEvents(deps, sessionId, 0, GENERATIONS)) {
    lines.push(...page.map(({ line }) => line))
  }
  expect(lines).toHaveLength(1)
  return JSON.parse(lines[0] ?? '').data.messages
}

/** Returns the messages given to the turn's model, without images, as a reader of the call sees them. */
async function givenTo(sessionId: string, turnId: string): Promise<Json[]> {
  const { organizationId } = ANYBODY
  const turn = await loadTurn(deps, { organizationId, sessionId, turnId }, 'reason:1')
  return JSON.parse(JSON.stringify(turn?.messages.map(withoutImages)))
}

describe('a model call with many images', () => {
  it.each([
    ['is read without loading them', 15],
    ['is read as it was compacted, without loading them', 20],
  ])('%s', async (_, images) => {
    const { sessionId, turnIds } = await createHistory(images, () => [...text('Look!'), image(LARGE_BYTES)])
    const turnId = turnIds.at(-1) ?? ''
    const call = { sessionId, turnId, sequence: images + 1, type: 'llm.generation', step: 'reason:1' }
    await addEvent({ ...call, data: generation })
    const { counted, bytes } = countBytes()
    const startedAt = performance.now()
    const messages = await messagesOfCall(counted, sessionId)
    const tookMs = Math.round(performance.now() - startedAt)
    process.stdout.write(`${images} images: ${bytes()} bytes were moved for the call, in ${tookMs} ms\n`)
    expect(messages).toEqual(await givenTo(sessionId, turnId))
    expect(bytes()).toBeLessThan(LARGE_BYTES / 10)
  })

  it('is read with all other fields of its parts', async () => {
    const parts: ContentPart[] = [
      { type: 'image', url: 'https://example.com/a.png' },
      { type: 'image', url: 'https://example.com/a.png', base64: '', media_type: null },
      { type: 'image', base64: null, url: 'https://example.com/a.png' },
      { type: 'image_file', image_id: newUuid() },
      { type: 'text', text: '"base64"' },
      image(100),
    ]
    const { sessionId, turnIds } = await createHistory(2, () => parts)
    const turnId = turnIds.at(-1) ?? ''
    const results = [null, [], [{ type: 'text', text: '{"type":"image","base64":"aGk="}' }, image(100), image(200)]]
    for (const [index, result] of results.entries()) {
      const data = { tool_call_id: `call_${index}`, result, ...(result === null ? { error: 'no' } : {}) }
      const step = `tool:1:call_${index}`
      await addEvent({ sessionId, turnId, sequence: 3 + index, type: 'tool.completed', step, data })
    }
    const read = await readConversation(deps, sessionId, turnId)
    expect(JSON.parse(JSON.stringify(read))).toEqual(await givenTo(sessionId, turnId))
    expect(read).toHaveLength(5)
  })
})
