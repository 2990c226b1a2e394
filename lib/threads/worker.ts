import { parentPort } from 'node:worker_threads'

export type ThreadMessage<Answer> = { answer: Answer } | { is: 'ready' } | { is: 'done'; cpuMs: number }

/**
 * Serves a pool's jobs; this is the whole program of its threads. A job's answers are sent one by one, so that they
 * survive an early end of the job.
 */
export function serveJobs<Job, Answer>(work: (job: Job) => Iterable<Answer> | AsyncIterable<Answer>): void {
  const send = (message: ThreadMessage<Answer>) => parentPort?.postMessage(message)
  // A rejection ends the thread, as a thrown error does.
  parentPort?.on('message', async (job: Job) => {
    const begunAt = process.threadCpuUsage()
    for await (const answer of work(job)) send({ answer })
    const { user, system } = process.threadCpuUsage(begunAt)
    send({ is: 'done', cpuMs: (user + system) / 1000 })
  })
  // A job that cannot be deserialized ends the thread and thereby itself.
  parentPort?.on('messageerror', (error) => {
    throw error
  })
  send({ is: 'ready' })
}
