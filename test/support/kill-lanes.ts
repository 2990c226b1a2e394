import { createLab } from './lab.ts'
import { startApiProcess } from './process.ts'
import { startService, type TestService } from './service.ts'
import { createWorkerPool } from './workers.ts'

/** Place whose process of one kind is killed again and again, while clients read answers there. */
export type Lane = {
  /** What is killed: a worker, the API that the clients use, or a process with both. */
  kind: 'worker' | 'api' | 'both'
  service: TestService
  /** Addresses for clients: first the process that is killed, if it streams to them; the last one lives. */
  urls: string[]
  /** Finds the process to kill, which runs the turn if the lane kills workers. Returns a function that kills it. */
  aim(turnId: string): Promise<() => Promise<void>>
  /** Replaces what was killed. */
  refill(): Promise<void>
}

const openService = () =>
  startService({
    worker: false,
    environment: { ALLOW_PRIVATE_NETWORK: 'true' },
    capabilities: [createLab().capability],
  })

/** Opens a service whose API and workers are processes of their own: a lane kills workers, another one the API. */
export async function openLanesApart(): Promise<Lane[]> {
  const service = await openService()
  const pool = createWorkerPool(service, 2)
  let [api] = await Promise.all([startApiProcess(service), pool.fill()])
  const urls = [api.url, service.url]
  const aimAtWorker = async (turnId: string) => {
    const worker = (await pool.findRunner(turnId)) ?? pool.list()[0]
    return async () => worker && pool.kill(worker)
  }
  const refillApi = async () => {
    api = await startApiProcess(service)
    urls[0] = api.url
  }
  return [
    { kind: 'worker', service, urls: [service.url], aim: aimAtWorker, refill: pool.fill },
    { kind: 'api', service, urls, aim: async () => api.kill, refill: refillApi },
  ]
}

/** Opens a service of two processes with API and worker. The lane kills the process that its clients use. */
export async function openLaneTogether(): Promise<Lane[]> {
  const service = await openService()
  const start = () => startApiProcess(service, 'main.ts')
  let [current, spare] = await Promise.all([start(), start()])
  const urls = [current.url, service.url]
  const refill = async () => {
    current = spare
    urls[0] = current.url
    spare = await start()
  }
  return [{ kind: 'both', service, urls, aim: async () => current.kill, refill }]
}
