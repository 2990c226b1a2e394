import { countOf } from '../support/counts.ts'
import { call, createScriptedSession, textMessage, waitFor } from '../support/http.ts'
import { killProcesses, type ServiceProcess, startApiProcess } from '../support/process.ts'
import { createRandom, type Random } from '../support/random.ts'
import { isVerified, type Receiver, startReceiver } from '../support/receiver.ts'
import { seedsOf } from '../support/seeds.ts'
import { startService, type TestService } from '../support/service.ts'

const KILLS = countOf('webhookKills')
const SESSIONS = 6
const PROCESSES = 2
/** Latest kill after messages are posted: their turns have ended, and deliveries are under way. */
const LATEST_KILL_MS = 2000
/** Part of the deliveries whose first request the receiver takes and does not answer with 2xx. */
const REFUSED = 0.1
/** Time for all deliveries, with one back-off of 5 s before some of them. */
const DELIVERED_MS = 60_000

let service: TestService
let receiver: Receiver
const processes: (ServiceProcess & { url: string })[] = []

/** Starts a process with API and worker. */
const startOne = async () => void processes.push(await startApiProcess(service, 'main.ts'))

beforeEach(async () => {
  receiver = await startReceiver()
  service = await startService({ worker: false, environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  for (let count = 0; count < PROCESSES; count++) await startOne()
})
afterEach(async () => {
  processes.length = 0
  await killProcesses()
  await service.stop()
  await receiver.close()
})

/** Posts a message to each session, at any process. One whose process is killed may be lost. */
const postAll = (sessions: string[], random: Random): Promise<unknown> =>
  Promise.all(
    sessions.map((session) => {
      const url = processes[Math.floor(random() * processes.length)]?.url ?? service.url
      return call(url, 'POST', `/v1/sessions/${session}/messages`, textMessage('Go')).catch(() => {})
    }),
  )

/** Posts messages and kills a process, again and again. Another process takes over, and a new one is started. */
async function killRepeatedly(sessions: string[], random: Random): Promise<void> {
  for (let kill = 0; kill < KILLS; kill++) {
    const posted = postAll(sessions, random)
    // The random moment is what this tests.
    await new Promise((resolve) => setTimeout(resolve, random() * LATEST_KILL_MS))
    const [victim] = processes.splice(Math.floor(random() * processes.length), 1)
    await victim?.kill()
    await Promise.all([posted, startOne()])
  }
}

/** Tokens of a budget for one session, which two or three turns use up. */
const SMALL = 300
/** Tokens of a call's input and its whole answer. */
const MOST_OF_CALL = 100

type Told = { session: string; turn: string; at: number }

/** The ends of all turns as the record has them: in each session in the order of its events. */
const readEnds = (): Promise<Told[]> => service.platform.deps.db.$queryRaw<Told[]>`
  SELECT 'session_' || replace(session_id::text, '-', '') AS session, 'turn_' || replace(turn_id::text, '-', '') AS turn,
    sequence AS at
  FROM events WHERE type IN ('turn.completed', 'turn.failed', 'turn.cancelled') ORDER BY session_id, sequence`

const bySession = (ends: Pick<Told, 'session' | 'turn'>[]) => {
  const sessions = Object.groupBy(ends, ({ session }) => session)
  return Object.fromEntries(Object.entries(sessions).map(([id, told]) => [id, told?.map(({ turn }) => turn)]))
}

describe('webhooks and budgets, while processes with API and worker are killed', () => {
  it.each(seedsOf('webhookKills'))(
    `get each event, in order, and count each call, ${KILLS} times (SEED=%i)`,
    async (seed) => {
      const random = createRandom(seed)
      const input = { url: receiver.url, events: ['turn.completed', 'turn.failed'] }
      const hook = (await call(service.url, 'POST', '/v1/webhooks', input)).body
      let unverified = 0
      const asked = new Set<string>()
      receiver.answer = (response, received) => {
        // Now, because a signature is not accepted for more than five minutes.
        if (!isVerified(hook.secret, received)) unverified++
        // Once, because the pauses grow: 5 s, 15 s, 45 s.
        const isRefused = !asked.has(received.id) && random() < REFUSED
        asked.add(received.id)
        response.writeHead(isRefused ? 500 : 204).end()
      }
      const sessions: string[] = []
      const steps = [{ text: 'Done and done.', tokens_per_second: 20 }]
      for (let count = 0; count < SESSIONS; count++) sessions.push(await createScriptedSession(service.url, steps))
      const large = await addBudget({ scope: 'organization', limit_tokens: 1_000_000 })
      const small = await addBudget({ scope: 'session', session_id: sessions[0], limit_tokens: SMALL })
      await killRepeatedly(sessions, random)
      const { db } = service.platform.deps
      await waitFor(async () => (await db.turn.count({ where: { finishedAt: null } })) === 0, 'all turns to end')
      await expectExact(large, small)
      await waitFor(async () => (await db.webhookLane.count()) === 0, 'all deliveries', DELIVERED_MS)

      const ends = await readEnds()
      expect(ends.length).toBeGreaterThan(KILLS)
      expect(unverified).toBe(0)
      expectOncePerTurn()
      expect(bySession(firstTold())).toEqual(bySession(ends))
      const rows = await db.webhookDelivery.findMany({ select: { status: true } })
      expect(rows).toEqual(ends.map(() => ({ status: 'delivered' })))
      const repeated = receiver.received.length - ends.length
      process.stdout.write(`${KILLS} kills, seed ${seed}: ${ends.length} events, ${repeated} requests more\n`)
    },
  )
})

/** Creates a budget. Returns its path. */
async function addBudget(input: object): Promise<string> {
  const { status, body } = await call(service.url, 'POST', '/v1/budgets', input)
  expect({ status, body }).toMatchObject({ status: 201 })
  return `/v1/budgets/${body.id}`
}

/** Expects that nothing is reserved, that each call that ended is counted once, and that the small budget held. */
async function expectExact(large: string, small: string): Promise<void> {
  const [all, one, usage] = await Promise.all(
    [large, small, '/v1/usage'].map(async (path) => (await call(service.url, 'GET', path)).body),
  )
  const turns = await service.platform.deps.db.turn.aggregate({ _sum: { inputTokens: true, outputTokens: true } })
  const used = Number(turns._sum.inputTokens) + Number(turns._sum.outputTokens)
  expect(usage.total.input_tokens + usage.total.output_tokens).toBe(used)
  expect([all, one]).toMatchObject([{ reserved_tokens: 0 }, { reserved_tokens: 0 }])
  // A killed call counts with what it may have used: at most its input and what it streamed.
  expect(all.spent_tokens).toBeGreaterThanOrEqual(used)
  expect(all.spent_tokens).toBeLessThanOrEqual(used + KILLS * SESSIONS * MOST_OF_CALL)
  expect(one.spent_tokens).toBeLessThanOrEqual(SMALL)
  const refused = await service.platform.deps.db.turn.count({ where: { errorCode: 'budget_exceeded' } })
  expect(refused).toBeGreaterThan(0)
  process.stdout.write(
    `budgets: ${used} tokens in usage, ${all.spent_tokens} counted, ${one.spent_tokens} of ${SMALL}\n`,
  )
}

/** The events in the order in which the receiver first got each. */
function firstTold() {
  const seen = new Set<string>()
  const first = receiver.received.filter(({ id }) => !seen.has(id) && seen.add(id))
  return first.map(({ event: { data } }) => ({ session: data.session_id, turn: data.turn_id }))
}

/** Duplicates have the same id and the same body. */
function expectOncePerTurn(): void {
  const bodies = new Map<string, string>()
  const ids = new Map<string, string>()
  for (const { id, body, event } of receiver.received) {
    expect([bodies.get(id) ?? body, ids.get(event.data.turn_id) ?? id]).toEqual([body, id])
    bodies.set(id, body)
    ids.set(event.data.turn_id, id)
  }
}
