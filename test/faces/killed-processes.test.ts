import { freePorts } from '../../dev/services/index.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses, startApiProcess } from '../support/process.ts'
import { startService, type TestService } from '../support/service.ts'
import { createWorkerPool, type WorkerPool } from '../support/workers.ts'
import { comeBack } from './ai/loss-scenarios.ts'
import { lastOf, textOf } from './ai/page.ts'
import { slow } from './ai/scenario.ts'
import { openStage, type Stage } from './ai/stage.ts'
import { type VersionName, versions } from './ai/versions.ts'

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

/** Takes long enough for the service to be there again before its end. */
const LAST = slow(8, 10)
const STEPS = [
  { thinking: 'Hm. ', text: 'First this. ', tool_calls: [{ name: 'wait', arguments: { ms: 100 } }] },
  { thinking: 'Well. ', ...LAST },
]

const names = Object.keys(versions) as VersionName[]

/** Opens a chat of each version, and sends a message in it. Resolves once all are in the middle of their answers. */
async function openInMidAnswer(url: string): Promise<{ stages: Stage[]; sending: Promise<unknown>[] }> {
  const stages = await Promise.all(
    names.map((version) => openStage({ target: service.url, pageTarget: url, version, steps: STEPS })),
  )
  const sending = stages.map((stage) => stage.say('Take your time'))
  await Promise.all(
    stages.map(async (stage) => {
      await stage.untilEvent('output.message.started', 2)
      await stage.untilEvent('output.message.delta', 3)
    }),
  )
  return { stages, sending }
}

async function expectWholeAnswers(stages: Stage[]): Promise<void> {
  for (const stage of stages) {
    expect([stage.version.name, textOf(lastOf(stage.chat))]).toEqual([stage.version.name, `First this. ${LAST.text}`])
    expect(await stage.turns()).toHaveLength(1)
    await stage.check()
    await stage.close()
  }
}

it('chats whose API is killed in mid-answer come back to it when it has been started again', async () => {
  const environment = { PORT: `${(await freePorts(1))[0]}` }
  const api = await startApiProcess(service, 'api/main.ts', environment)
  const { stages, sending } = await openInMidAnswer(api.url)
  await api.kill()
  await Promise.all(sending)
  expect(stages.map(({ chat }) => chat.status)).toEqual(names.map(() => 'error'))
  await startApiProcess(service, 'api/main.ts', environment)
  await Promise.all(stages.map(comeBack))
  await expectWholeAnswers(stages)
})

it('chats whose worker is killed in mid-answer show the whole answer once, on the same connection', async () => {
  const { stages, sending } = await openInMidAnswer(service.url)
  await workers.killAll()
  await workers.fill()
  await Promise.all(sending)
  expect(stages.map((stage) => stage.posts())).toEqual(names.map(() => 1))
  await expectWholeAnswers(stages)
})
