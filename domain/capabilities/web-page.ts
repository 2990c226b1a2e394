import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { WorkerInput, WorkerOutput } from './web-page-worker.ts'

/** A page that cannot be converted; the message says why. */
export class WebPageError extends Error {
  override name = 'WebPageError'
}

const TIME_LIMIT_MS = 10_000
const MAX_WORKERS = Math.max(2, Math.floor(availableParallelism() / 2))
const resourceLimits = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 64, stackSizeMb: 4 }

let running = 0
const waiting: (() => void)[] = []

/**
 * HTML as Markdown. A page may be made to take time and memory, so it is converted in a thread of its own, and only so
 * many at once. Throws WebPageError; when `signal` aborts, its reason.
 */
export async function convertWebPage(
  page: WorkerInput,
  signal: AbortSignal,
  timeLimitMs = TIME_LIMIT_MS,
): Promise<WorkerOutput> {
  await enter(signal)
  try {
    return await runWorker(page, signal, timeLimitMs)
  } finally {
    running--
    waiting.shift()?.()
  }
}

/** Resolves when there is room, in the order of arrival. */
async function enter(signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (running >= MAX_WORKERS) {
    await new Promise<void>((resolve, reject) => {
      const stop = () => {
        waiting.splice(waiting.indexOf(resume), 1)
        reject(signal.reason)
      }
      const resume = () => {
        signal.removeEventListener('abort', stop)
        resolve()
      }
      waiting.push(resume)
      signal.addEventListener('abort', stop, { once: true })
    })
  }
  running++
}

async function runWorker(page: WorkerInput, signal: AbortSignal, timeLimitMs: number): Promise<WorkerOutput> {
  const worker = new Worker(new URL('./web-page-worker.ts', import.meta.url), {
    workerData: page,
    env: {},
    resourceLimits,
  })
  let timer: NodeJS.Timeout | undefined
  let stop: (() => void) | undefined
  try {
    return await new Promise<WorkerOutput>((resolve, reject) => {
      stop = () => reject(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      timer = setTimeout(() => reject(new WebPageError('the page takes too long to convert')), timeLimitMs)
      worker.once('message', resolve)
      worker.once('error', () => reject(new WebPageError('the page is too large or too deeply nested to convert')))
      worker.once('exit', () => reject(new WebPageError('the page cannot be converted')))
    })
  } finally {
    clearTimeout(timer)
    if (stop !== undefined) signal.removeEventListener('abort', stop)
    await worker.terminate()
  }
}
