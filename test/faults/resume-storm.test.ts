import { setTimeout as sleep } from 'node:timers/promises'
import { append, createAnswer, createOpenTurn } from '../support/by-hand.ts'
import { countOf } from '../support/counts.ts'
import { type Json, listEvents, waitFor } from '../support/http.ts'
import { killProcesses, type ServiceProcess, startApiProcess } from '../support/process.ts'
import { createResumingClient, type ResumingClient } from '../support/resuming-client.ts'
import { startService, type TestService } from '../support/service.ts'
import type { OpenStream } from '../support/stream.ts'

const SESSIONS = countOf('stormSessions')
const CLIENTS_OF_A_SESSION = 10
const CLIENTS = SESSIONS * CLIENTS_OF_A_SESSION
/** Rate for all sessions together. Each append goes to ten clients. */
const APPENDS_PER_SECOND = 100
const RETRY_MS = 100

type Session = Awaited<ReturnType<typeof createOpenTurn>> & { answer: ReturnType<typeof createAnswer> }
type Follower = { session: Session; client: ResumingClient; stream: OpenStream }

let service: TestService
let closing: ServiceProcess & { url: string }
let staying: ServiceProcess & { url: string }
beforeAll(async () => {
  service = await startService({ worker: false })
  ;[closing, staying] = await Promise.all([startApiProcess(service), startApiProcess(service)])
})
afterAll(async () => {
  await killProcesses()
  await service.stop()
})

/** Appends to one session after another until `stop`. */
function keepAppending(sessions: Session[]): { count(): number; stop(): Promise<void> } {
  let isStopped = false
  let count = 0
  const loop = async () => {
    while (!isStopped) {
      const { writer, answer } = sessions[count % SESSIONS] as Session
      await append(service.platform.deps, writer, [answer.delta(`${count++} `), answer.delta(`${count} `)])
      await sleep(1000 / APPENDS_PER_SECOND)
    }
  }
  const running = loop()
  return {
    count: () => count,
    stop: () => {
      isStopped = true
      return running
    },
  }
}

const refusals = new Map<string, number>()

/** Connects until it is accepted, waiting as long as each refusal asks. */
async function insist(client: ResumingClient, url: string): Promise<OpenStream> {
  for (;;) {
    const opened = await client.connect(url, 'since_id').catch((error: NodeJS.ErrnoException) => error)
    if ('frames' in opened && opened.status === 200) return opened
    const why = 'frames' in opened ? `${opened.status}` : `${opened.code}`
    refusals.set(why, (refusals.get(why) ?? 0) + 1)
    const waitSeconds = 'frames' in opened ? Number(opened.headers['retry-after'] ?? 0) : 0
    await sleep(Math.max(RETRY_MS, waitSeconds * 1000))
  }
}

/** Reconnects elsewhere when the stream has ended. Returns the disconnecting event. */
async function comeBack(follower: Follower): Promise<Json> {
  await follower.stream.ended
  const last = follower.stream.frames.at(-1)
  follower.stream = await insist(follower.client, staying.url)
  return { event: last?.event, ...last?.data }
}

describe(`when an API with ${CLIENTS} streams closes`, () => {
  it('all clients continue with another API, without losing or repeating an event', async () => {
    const sessions = await Promise.all(
      Array.from({ length: SESSIONS }, async () => ({
        ...(await createOpenTurn(service.platform.deps)),
        answer: createAnswer(),
      })),
    )
    const appending = keepAppending(sessions)
    const followers = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, index): Promise<Follower> => {
        const session = sessions[index % SESSIONS] as Session
        const client = createResumingClient(session.id)
        return { session, client, stream: await insist(client, closing.url) }
      }),
    )
    const refusedAtFirst = Object.fromEntries(refusals)
    refusals.clear()
    await appendMore(appending)
    const goodbyes = followers.map(comeBack)
    const closed = closing.stop()
    for (const goodbye of await Promise.all(goodbyes)) {
      expect(goodbye).toEqual({ event: 'disconnecting', reason: 'shutdown', retry_ms: expect.any(Number) })
    }
    await closed
    const refused = Object.fromEntries(refusals)
    await appendMore(appending)
    await appending.stop()
    process.stdout.write(
      `${CLIENTS} clients, ${appending.count()} appends; refused at first: ${JSON.stringify(refusedAtFirst)}, ` +
        `refused in the storm: ${JSON.stringify(refused)}\n`,
    )
    for (const session of sessions) await expectRecord(session, followers)
  })
})

/** Waits for a round of appends to all sessions. */
async function appendMore({ count }: { count(): number }): Promise<void> {
  const before = count()
  await waitFor(async () => count() >= before + SESSIONS, 'appends to go on')
}

async function expectRecord(session: Session, followers: Follower[]): Promise<void> {
  const record = await listEvents(service.url, session.id)
  const lastId = record.at(-1).id
  for (const { client, stream } of followers.filter((follower) => follower.session === session)) {
    if (client.received().at(-1)?.id !== lastId) await stream.until((frame) => frame.id === lastId)
    client.leave()
    expect(client.received()).toEqual(record)
  }
}
