import type { ChildProcess } from 'node:child_process'
import { availableParallelism, totalmem } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { createFairQueue } from '../../../../lib/fair-queue.ts'
import type { FileChange } from '../../../session-data/files/file-change.ts'
import { type Ended, runIn, startChild } from './child.ts'
import type { Command, Question } from './command.ts'

/** `busy`: the command did not start. */
export type Ran = Ended['ran'] | { outcome: 'busy' }

/** A command, and functions that read its session's files when it begins. */
export type BashJob = Omit<Command, 'tree' | 'earlierMs'> & {
  organizationId: string
  listTree(): Promise<string>
  read(question: Question): Promise<Uint8Array>
}

/** Processes that run bash. Each serves one organization, with one command at a time. */
export type BashProcesses = {
  /**
   * Runs a command, and returns once its skipped sleeping time has passed. Rejects with the error of `listTree` or
   * `read`, and with the signal's reason when `signal` aborts.
   */
  run(job: BashJob, signal: AbortSignal): Promise<Ran>
  /** Ends idle processes. */
  close(): void
}

export type BashOptions = {
  maxProcesses: number
  /** Returns the owner to whose share of the processes an organization counts. */
  ownerOf(organizationId: string): Promise<string>
}

/** Maximum time that a command waits for a process. It does not count towards the command's time limit. */
export const WAIT_MS = 10 * 60_000
/** Maximum number of waiting commands. They hold no resources yet. */
const WAITING = { maxWaiting: 10_000, maxWaitingOfOwner: 2000 }
/**
 * Maximum size of a result that is kept while its script's sleeping time passes. A command with a larger result runs
 * again afterwards.
 */
const MAX_KEPT_BYTES = 256 * 1024

const MIN_PROCESSES = 2
/** Machine memory for each process, which can take 1 GB. */
const BYTES_PER_PROCESS = 1.5 * 1024 ** 3

/** Returns how many processes the cores and the memory of this machine or container allow. */
export function fittingProcesses(cores = availableParallelism(), memoryBytes = memoryOfMachine()): number {
  return Math.max(MIN_PROCESSES, Math.min(2 * cores, Math.floor(memoryBytes / BYTES_PER_PROCESS)))
}

const memoryOfMachine = (): number => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)

export function createBashProcesses({ maxProcesses, ownerOf }: BashOptions): BashProcesses {
  const slots = createFairQueue(maxProcesses, WAIT_MS, WAITING)
  const idle = createIdleProcesses()
  let running = 0

  const runOnce = async (job: BashJob, signal: AbortSignal, earlierMs = 0) => {
    const claim = { owner: await ownerOf(job.organizationId), isUrgent: earlierMs > 0 }
    if (!(await slots.enter(claim, signal))) return BUSY
    running++
    try {
      const { organizationId, command, timeoutMs, maxFileBytes, read } = job
      const tree = await job.listTree()
      const child = idle.take(organizationId) ?? startChild()
      idle.endDownTo(maxProcesses - running)
      const ended = await runIn(child, { command, timeoutMs, maxFileBytes, tree, earlierMs }, read, signal)
      if (ended.isReusable) idle.keep(organizationId, child)
      return ended
    } finally {
      running--
      slots.leave(claim)
    }
  }
  return {
    run: async (job, signal) => {
      const { ran, sleptMs } = await runOnce(job, signal)
      if (sleptMs === 0) return ran
      if (sizeOf(ran) <= MAX_KEPT_BYTES) return passing(sleptMs, signal).then(() => ran)
      return passing(sleptMs, signal)
        .then(() => runOnce(job, signal, sleptMs))
        .then((again) => again.ran)
    },
    close: () => idle.endDownTo(0),
  }
}

const BUSY = { ran: { outcome: 'busy' as const }, sleptMs: 0 }

async function passing(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal, ref: false }).catch(() => signal.throwIfAborted())
}

const sizeOf = (ran: Ran): number =>
  'changes' in ran ? ran.changes.reduce((sum, change) => sum + sizeOfChange(change), 0) : 0

const sizeOfChange = (change: FileChange): number =>
  JSON.stringify({ ...change, bytes: undefined }).length + (change.do === 'write' ? change.bytes.length : 0)

/** Time that a process waits for the organization's next command: a start takes a third of a second of CPU. */
const IDLE_MS = 10_000

/** Keeps processes without work for the next command of their organization. They do not keep the service alive. */
function createIdleProcesses() {
  const idle = new Map<ChildProcess, { organizationId: string; timer: NodeJS.Timeout }>()
  const drop = (child: ChildProcess) => {
    clearTimeout(idle.get(child)?.timer)
    idle.delete(child)
    child.off('exit', onExit)
  }
  function onExit(this: ChildProcess): void {
    drop(this)
  }
  const end = (child: ChildProcess) => {
    drop(child)
    child.kill('SIGKILL')
  }
  return {
    keep(organizationId: string, child: ChildProcess): void {
      child.on('exit', onExit)
      child.unref()
      child.channel?.unref()
      idle.set(child, { organizationId, timer: setTimeout(() => end(child), IDLE_MS).unref() })
    },
    take(organizationId: string): ChildProcess | undefined {
      const child = [...idle.keys()].find((each) => idle.get(each)?.organizationId === organizationId)
      if (child === undefined) return undefined
      drop(child)
      child.ref()
      child.channel?.ref()
      return child
    },
    /** Ends the processes that have been idle longest, until `count` are left. */
    endDownTo(count: number): void {
      for (const child of [...idle.keys()].slice(0, Math.max(0, idle.size - count))) end(child)
    },
  }
}
