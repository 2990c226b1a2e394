import { randomBytes } from 'node:crypto'
import { readConversation } from '../../../domain/conversation/read.ts'
import type { Deps } from '../../../domain/deps.ts'
import { newUuid, toId } from '../../../domain/kit/ids.ts'
import { call, createSession, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { textOf } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())

/** Returns incompressible text. */
const noise = (bytes: number): string => randomBytes((bytes * 3) / 4).toString('base64')

type Conversation = { sessionId: string; turnId: string }

/** Creates a session with earlier turns of one question and one answer each, followed by the current turn. */
async function createConversation(turns: number, bytes: number): Promise<Conversation> {
  const id = await createSession(service.url)
  const sessionId = toUuid(id)
  const { body } = await call(service.url, 'GET', `/v1/sessions/${id}`)
  const common = { organizationId: toUuid(body.organization_id), sessionId }
  const ids = Array.from({ length: turns }, newUuid)
  const finished = { ...common, status: 'completed', finishedAt: new Date() } as const
  await deps.db.turn.createMany({ data: ids.map((id, turn) => ({ ...finished, id, inputSequence: 2 * turn + 1 })) })
  const messageOf = (turnId: string, turn: number, offset: number, type: string, role: string) => {
    const content = [{ type: 'text', text: `${role} ${turn} ${noise(bytes)}` }]
    const message = { id: toId('message', newUuid()), role, content }
    return { sessionId, sequence: 2 * turn + 1 + offset, type, ts: new Date(), turnId, data: { message } }
  }
  const portion = Math.max(1, Math.floor(5_000_000 / bytes))
  for (let first = 0; first < turns; first += portion) {
    const data = ids
      .slice(first, first + portion)
      .flatMap((turnId, place) => [
        messageOf(turnId, first + place, 0, 'input.message', 'user'),
        messageOf(turnId, first + place, 1, 'output.message.completed', 'agent'),
      ])
    await deps.db.event.createMany({ data })
  }
  await deps.db.session.update({ where: { id: sessionId }, data: { lastSequence: 2 * turns } })
  const { body: message } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('now'))
  return { sessionId, turnId: toUuid(message.id) }
}

async function timeOfReading({ sessionId, turnId }: Conversation, length: number): Promise<number> {
  const startedAt = performance.now()
  expect(await readConversation(deps, sessionId, turnId)).toHaveLength(length)
  return performance.now() - startedAt
}

const labels = (messages: Awaited<ReturnType<typeof readConversation>>): string[] =>
  messages.map((message) => textOf(message).split(' ').slice(0, 2).join(' '))

const expected = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => [`user ${from + index}`, `agent ${from + index}`]).flat()

describe('a conversation', () => {
  it('is read whole and in order, page by page when it is large', async () => {
    const { sessionId, turnId } = await createConversation(12, 300_000)
    const messages = await readConversation(deps, sessionId, turnId)
    expect(labels(messages)).toEqual([...expected(0, 12), 'now'])
  })

  it('that is too large for a process begins later, with a question', async () => {
    const { sessionId, turnId } = await createConversation(25, 1_000_000)
    const read = labels(await readConversation(deps, sessionId, turnId))
    const [first = ''] = read
    expect(first).toMatch(/^user \d+$/)
    const from = Number(first.split(' ')[1])
    expect(from).toBeGreaterThan(0)
    expect(from).toBeLessThan(15)
    expect(read).toEqual([...expected(from, 25), 'now'])
  })

  it('takes time in proportion to its length', async () => {
    const short = await createConversation(500, 100)
    const long = await createConversation(4000, 100)
    await deps.db.$executeRaw`ANALYZE`
    const times = { short: Number.POSITIVE_INFINITY, long: Number.POSITIVE_INFINITY }
    for (let round = 0; round < 5; round++) {
      times.short = Math.min(times.short, await timeOfReading(short, 1001))
      times.long = Math.min(times.long, await timeOfReading(long, 8001))
    }
    // Scanning all messages for each turn would make it about sixty times as long.
    expect(times.long / times.short).toBeLessThan(30)
  })

  it('keeps the question of a turn whose own results are too large', async () => {
    const { sessionId, turnId } = await createConversation(0, 0)
    for (let sequence = 10; sequence < 58; sequence++) {
      const result = [{ type: 'text', text: JSON.stringify(noise(1_000_000)) }]
      const data = { tool_call_id: `call_${sequence}`, result }
      const step = `tool:${sequence}:call_${sequence}`
      await deps.db.event.create({
        data: { sessionId, sequence, type: 'tool.completed', ts: new Date(), turnId, step, data },
      })
    }
    const messages = await readConversation(deps, sessionId, turnId)
    expect(textOf(messages[0])).toBe('now')
    expect(messages.length).toBeGreaterThan(20)
    expect(messages.length).toBeLessThan(48)
  })
})
