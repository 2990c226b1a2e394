import { randomUUID } from 'node:crypto'
import OpenAI from 'openai'
import { freePorts } from '../../dev/services/index.ts'
import { waitFor } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses, startApiProcess } from '../support/process.ts'
import { startService, type TestService } from '../support/service.ts'
import { createWorkerPool, type WorkerPool } from '../support/workers.ts'
import { slow } from './ai/scenario.ts'
import { openStage, type Stage } from './openai/stage.ts'

const STEP = slow(4, 12)

let service: TestService
let workers: WorkerPool
beforeAll(async () => {
  service = await startService({ worker: false, capabilities: [createLab().capability] })
  workers = createWorkerPool(service, 1)
  await workers.fill()
})
afterAll(async () => {
  await workers.killAll()
  await killProcesses()
  await service.stop()
})

/** Asks an agent with a client that repeats its request when the connection is lost, as the package does by itself. */
async function startAsking(stage: Stage): Promise<{ asked: Promise<string | null> }> {
  const client = new OpenAI({
    baseURL: stage.baseURL,
    apiKey: 'none',
    maxRetries: 10,
    defaultHeaders: { 'X-Session-Id': randomUUID() },
  })
  const messages = [{ role: 'user' as const, content: 'Talk' }]
  const asked = client.chat.completions.create({ model: stage.agentId, messages })
  const isWriting = async () => (await stage.turns().catch(() => [])).at(0)?.status === 'active'
  await waitFor(isWriting, 'the turn to begin')
  return { asked: asked.then(({ choices }) => choices[0]?.message.content ?? null) }
}

it('a question whose API is killed in mid-answer is repeated, and answered by the same turn', async () => {
  const environment = { PORT: `${(await freePorts(1))[0]}` }
  const api = await startApiProcess(service, 'api/main.ts', environment)
  const stage = await openStage({ url: service.url, headers: {} }, [STEP], { url: api.url, headers: {} })
  const { asked } = await startAsking(stage)
  await api.kill()
  await startApiProcess(service, 'api/main.ts', environment)
  expect(await asked).toBe(STEP.text)
  expect(stage.posts()).toBeGreaterThan(1)
  await stage.expectStored(['Talk', STEP.text])
  await stage.close()
})

it('a question whose worker is killed in mid-answer is answered once, on the same connection', async () => {
  const stage = await openStage({ url: service.url, headers: {} }, [STEP])
  const { asked } = await startAsking(stage)
  await workers.killAll()
  await workers.fill()
  expect(await asked).toBe(STEP.text)
  expect(stage.posts()).toBe(1)
  await stage.expectStored(['Talk', STEP.text])
  await stage.close()
})
