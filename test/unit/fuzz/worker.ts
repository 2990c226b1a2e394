import { parentPort, workerData } from 'node:worker_threads'
import { PARSERS } from './parsers/index.ts'
import { type Effort, run } from './run.ts'

/** Job of this thread: the parser's name, and how much to try. */
export type FuzzJob = Effort & { name: string }

/** Shared with the tests, which read it when this thread hangs or dies: number of inputs, length, and the input. */
const progress = new Int32Array(workerData.input, 0, 2)
const current = new Uint8Array(workerData.input, 8)

function begin(input: Buffer): void {
  current.set(input.subarray(0, current.length))
  progress[1] = input.length
  Atomics.add(progress, 0, 1)
}

parentPort?.on('message', async ({ name, ...effort }: FuzzJob) => {
  const parser = PARSERS.find((one) => one.name === name)
  if (parser === undefined) throw new Error(`there is no parser ${name}`)
  const result = await run(parser, effort, begin)
  await parser.close?.()
  parentPort?.postMessage(result)
})
