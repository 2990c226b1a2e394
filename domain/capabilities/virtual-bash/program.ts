import { setPriority } from 'node:os'
import { writtenPathProblem } from '../../../contract/file-paths.ts'
import type { TreeEntry } from '../../files/session-files.ts'
import {
  type Command,
  type CommandResult,
  MAX_WRITTEN_BYTES,
  type Output,
  type Question,
  type Reply,
} from './command.ts'
import type { Origin } from './file-tree.ts'
import { Overlay } from './overlay.ts'
import { createShell, isOwn } from './shell.ts'

/** Program of a bash process. Runs one command over a session's files, and returns what it says and what it changes. */

const MAX_OUTPUT_BYTES = 64 * 1024
/** Control characters take six times as much. */
const MAX_JSON_BYTES = 128 * 1024
const MAX_REASON_LENGTH = 1000
/** Lets everything else on the machine go first. */
const NICENESS = 10

async function runCommand({ command, timeoutMs, maxFileBytes, tree }: Command): Promise<CommandResult> {
  const startedAt = Date.now()
  // This is what listTree has made.
  const entries = (JSON.parse(tree) as TreeEntry[]).filter(({ path }) => !isOwn(path))
  const overlay = new Overlay({
    ...{ entries, maxFileBytes, maxBytes: MAX_WRITTEN_BYTES },
    ...{ fetch: fetchContent, problemOf: writtenPathProblem },
  })
  try {
    const { exitCode, stdout, stderr } = await createShell(overlay, timeoutMs).exec(command, { rawScript: true })
    if (Date.now() - startedAt >= timeoutMs) return { outcome: 'late' }
    return { outcome: 'exited', exitCode, stdout: cut(stdout), stderr: cut(stderr), changes: overlay.changes() }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { outcome: 'broken_off', reason: reason.slice(0, MAX_REASON_LENGTH).toWellFormed() }
  }
}

const asked = new Map<number, (bytes: Uint8Array) => void>()
let lastNumber = 0

/** Asks for a content. No reply comes when the file has another one by now: this process is then killed. */
function fetchContent({ path, contentId }: Origin): Promise<Uint8Array> {
  const number = ++lastNumber
  send({ number, path, contentId })
  return new Promise((resolve) => asked.set(number, resolve))
}

function receive(reply: Reply): void {
  asked.get(reply.number)?.(reply.bytes)
  asked.delete(reply.number)
}

/** Cuts an output to what a model can be given. */
function cut(output: string): Output {
  const sizeBytes = Buffer.byteLength(output)
  let text = output.slice(0, MAX_OUTPUT_BYTES)
  while (Buffer.byteLength(text) > MAX_OUTPUT_BYTES || Buffer.byteLength(JSON.stringify(text)) > MAX_JSON_BYTES) {
    text = text.slice(0, Math.floor(text.length * 0.9))
  }
  return { text: text.toWellFormed(), omittedBytes: sizeBytes - Buffer.byteLength(text) }
}

const sendToParent = process.send?.bind(process)
const send = (message: Question | CommandResult) => sendToParent?.(message)

setPriority(NICENESS)
// They are for the whole group of processes, as Ctrl-C is; the parent decides when its commands end.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
// Without its parent there is nobody left to give the result to.
process.on('disconnect', () => process.exit())
process.on('message', async (message: Command | Reply) => {
  if ('number' in message) receive(message)
  else send(await runCommand(message))
})
