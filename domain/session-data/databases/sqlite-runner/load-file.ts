import { readFile } from 'node:fs/promises'
import type { Job, JobLimits } from './job.ts'
import type { ProcessPool } from './processes.ts'
import { GRACE_MS, toResult } from './run-task.ts'
import { type Failure, MAX_PAGES, PAGE_BYTES, type Pages } from './sqlite-runner.ts'

/** Checks a SQLite file in a process, and stores its pages. The file is changed. */
export async function loadFile<Result>(
  processes: ProcessPool,
  path: string,
  store: (pages: Pages) => Promise<Result>,
  limits: JobLimits,
  signal: AbortSignal,
): Promise<{ outcome: 'done'; result: Result } | Failure> {
  const process = await processes.take(signal)
  try {
    const job: Job = { do: 'load', path, sql: '', params: [], limits }
    const ran = toResult(await process.call(job, limits.timeMs + GRACE_MS, signal), limits)
    if (ran.outcome === 'killed') return unusable('checking it took too much memory')
    if (ran.outcome !== 'done') return unusable(ran.message)
  } finally {
    processes.giveBack(process)
  }
  const bytes = await readFile(path)
  if (bytes.length % PAGE_BYTES !== 0) return unusable('its size is not a whole number of pages')
  const pageCount = bytes.length / PAGE_BYTES
  if (pageCount > MAX_PAGES) return unusable('it has more than 50 MiB')
  const numbers = Array.from({ length: pageCount }, (_, index) => index + 1)
  return { outcome: 'done', result: await store({ pageCount, numbers, bytes }) }
}

const unusable = (problem: string): Failure => ({
  outcome: 'damaged',
  message: `The file is not a SQLite database that can be used here: ${problem}`,
})
