import { parentPort } from 'node:worker_threads'

export type ThreadMessage<Answer> = { answer: Answer } | { is: 'ready' | 'done' }

/** The whole program of a pool's thread: each job's answers go out one by one, so that those of a job that is ended count. */
export function serveJobs<Job, Answer>(work: (job: Job) => Iterable<Answer>): void {
  const send = (message: ThreadMessage<Answer>) => parentPort?.postMessage(message)
  parentPort?.on('message', (job: Job) => {
    for (const answer of work(job)) send({ answer })
    send({ is: 'done' })
  })
  // A job that cannot be read ends the thread, and so itself.
  parentPort?.on('messageerror', (error) => {
    throw error
  })
  send({ is: 'ready' })
}
