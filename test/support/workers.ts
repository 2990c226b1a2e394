import { waitFor } from './http.ts'
import { toUuid } from './ids.ts'
import { type ServiceProcess, startLabWorkerProcess } from './process.ts'
import type { TestService } from './service.ts'
import { type RunPlace, runnerPid } from './temporal.ts'

/** Pool of worker processes with the lab's tools, from which a test kills some. */
export type WorkerPool = {
  /** Starts workers until the pool is full. */
  fill(): Promise<void>
  /** Returns the worker that currently runs a step of the turn, if it is known. */
  findRunner(turnId: string, place?: RunPlace): Promise<ServiceProcess | undefined>
  /** Waits until the record has a step of the turn that one of the workers runs, then kills that worker. */
  killRunner(turnId: string): Promise<void>
  killAll(): Promise<void>
  kill(worker: ServiceProcess): Promise<void>
  list(): ServiceProcess[]
}

export function createWorkerPool(service: TestService, size: number): WorkerPool {
  const workers = new Set<ServiceProcess>()
  const kill = async (worker: ServiceProcess) => {
    workers.delete(worker)
    await worker.kill()
  }
  const findRunner = async (turnId: string, place?: RunPlace) => {
    const pid = await runnerPid(service, turnId, place)
    return [...workers].find((worker) => worker.pid === pid)
  }
  /** Temporal may know another worker for a moment, which has got the step and hands it back. */
  const findInRecord = async (turnId: string) => {
    const { turnStep, process } = service.platform.deps.db
    const step = await turnStep.findFirst({ where: { turnId: toUuid(turnId) }, orderBy: { begunAt: 'desc' } })
    const runner = step?.process == null ? null : await process.findUnique({ where: { number: step.process } })
    return [...workers].find(({ pid }) => runner?.name?.startsWith(`${pid}@`))
  }
  return {
    fill: async () => {
      const missing = Array.from({ length: size - workers.size }, () => startLabWorkerProcess(service))
      for (const worker of await Promise.all(missing)) workers.add(worker)
    },
    findRunner,
    killRunner: async (turnId) => kill(await waitFor(() => findInRecord(turnId), 'a worker to run a step')),
    killAll: async () => {
      await Promise.all([...workers].map(kill))
    },
    kill,
    list: () => [...workers],
  }
}
