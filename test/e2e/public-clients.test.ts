import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { EventSource } from 'eventsource'
import { eventTypes } from '../../contract/events.ts'
import { freePorts } from '../../scripts/services.ts'
import { createScriptedSession, type Json, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { type ServiceProcess, startApiProcess } from '../support/process.ts'
import { expectSoundRecord } from '../support/record.ts'
import { type RedisSite, startRedisSite } from '../support/redis-site.ts'
import type { TestService } from '../support/service.ts'
import { post } from '../support/turns.ts'

const STEP = { thinking: 'one two three', text: 'four five six seven eight nine ten', tokens_per_second: 20 }
/** Turns around each of: an undisturbed stretch, Redis, a stop and a kill of the API. */
const TURNS = 4

type FollowingClient = { ids: () => string[]; close(): void }

let site: RedisSite
let service: TestService
let api: ServiceProcess & { url: string }
let environment: Record<string, string>
beforeAll(async () => {
  site = await startRedisSite()
  service = site.service
  environment = { PORT: `${(await freePorts(1))[0]}`, SSE_REALTIME_CYCLE_SECS: '1' }
  api = await startApiProcess(service, 'api/main.ts', environment)
})
afterAll(() => site.close())

function followWithEventSource(id: string): FollowingClient {
  const ids: string[] = []
  const source = new EventSource(`${api.url}/v1/sessions/${id}/sse`)
  for (const type of eventTypes) source.addEventListener(type, (event) => ids.push(JSON.parse(event.data).id))
  return { ids: () => ids, close: () => source.close() }
}

const SCRIPT = fileURLToPath(new URL('../../docs/examples/follow_session.py', import.meta.url))

function followWithPython(id: string): FollowingClient {
  const ids: string[] = []
  const child: ChildProcess = spawn('python3', [SCRIPT, api.url, id], { stdio: ['ignore', 'pipe', 'ignore'] })
  if (child.stdout) createInterface({ input: child.stdout }).on('line', (line) => ids.push(line))
  return { ids: () => ids, close: () => void child.kill() }
}

/** Some machines have only Node, and some a python3 that only tells where to get one. */
function hasPython(): boolean {
  try {
    execFileSync('python3', ['-c', 'import sys; assert sys.version_info >= (3, 9)'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const length = async (id: string): Promise<number> => (await listEvents(service.url, id)).length

/** Waits until the client has got some more of a turn that is under way. */
async function untilMore(client: FollowingClient): Promise<void> {
  const before = client.ids().length
  await waitFor(async () => client.ids().length >= before + 3, 'the client to get more')
}

async function playTurn(id: string, client: FollowingClient, disturb: () => Promise<void>): Promise<void> {
  const before = await length(id)
  await post(service.url, id)
  await untilMore(client)
  await disturb()
  await waitFor(async () => {
    const events = await waitUntilIdle(service.url, id)
    return events.length > before + 5
  }, 'the turn to end')
}

const startApi = async () => {
  api = await startApiProcess(service, 'api/main.ts', environment)
}

async function expectRecordOverAll(client: FollowingClient, id: string): Promise<void> {
  await playTurn(id, client, async () => {})
  await playTurn(id, client, async () => {
    await site.stopRedis()
    await site.startRedis()
  })
  await playTurn(id, client, async () => {
    await api.stop()
    await startApi()
  })
  await playTurn(id, client, async () => {
    await api.kill()
    await startApi()
  })
  const record: Json[] = await waitUntilIdle(service.url, id)
  expectSoundRecord(record)
  expect(record.filter(({ type }) => type === 'turn.completed')).toHaveLength(TURNS)
  const ids = record.map((event) => event.id)
  await waitFor(async () => client.ids().includes(ids.at(-1)), 'the client to get the last event')
  client.close()
  expect(client.ids()).toEqual(ids)
}

const createSession = () => createScriptedSession(service.url, Array(TURNS).fill(STEP))

describe('over connection cycles, a Redis that is started again, an API that is stopped and one that is killed', () => {
  it('a standard EventSource receives the record', async () => {
    const id = await createSession()
    await expectRecordOverAll(followWithEventSource(id), id)
  })

  const python = hasPython() ? it : it.skip
  python(
    `a program of Python's standard library receives the record${hasPython() ? '' : ' (skipped: no python3)'}`,
    async () => {
      const id = await createSession()
      await expectRecordOverAll(followWithPython(id), id)
    },
  )
})
