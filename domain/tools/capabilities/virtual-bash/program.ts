import { setPriority } from 'node:os'
import { writtenPathProblem } from '../../../../contract/kit/file-paths.ts'
import type { TreeEntry } from '../../../session-data/files/session-files.ts'
import { installClock, passedOver, startClock } from './clock.ts'
import {
  type Answer,
  type Command,
  type CommandResult,
  MAX_WRITTEN_BYTES,
  type Output,
  type Question,
  type Ready,
  type Reply,
} from './command.ts'
import type { Origin } from './file-tree.ts'

/**
 * Entry point of a bash process. Runs commands over a session's files, one after the other, and returns the output and
 * the changes of each.
 */

// Installed first: just-bash keeps the timers that exist when it is loaded.
installClock()
const { Overlay } = await import('./overlay.ts')
const { createShell, inOwnWords, isOwn } = await import('./shell.ts')

const MAX_OUTPUT_BYTES = 64 * 1024
/** Control characters take six times as much as others. */
const MAX_JSON_BYTES = 128 * 1024
const MAX_REASON_LENGTH = 1000
/** Lowest priority, so that everything else on the machine goes first. */
const NICENESS = 10
/** Memory above which a process runs no further command. */
const MAX_REUSED_BYTES = 256 * 1024 * 1024

async function answer(command: Command): Promise<Answer> {
  startClock(command.earlierMs)
  const result = await runCommand(command)
  const isReusable = result.outcome === 'exited' && process.memoryUsage.rss() < MAX_REUSED_BYTES
  return { result, sleptMs: Math.max(0, passedOver()), isReusable }
}

async function runCommand({ command, timeoutMs, maxFileBytes, tree }: Command): Promise<CommandResult> {
  const startedAt = Date.now()
  // Created by listTree.
  const entries = (JSON.parse(tree) as TreeEntry[]).filter(({ path }) => !isOwn(path))
  const overlay = new Overlay({
    ...{ entries, maxFileBytes, maxBytes: MAX_WRITTEN_BYTES },
    ...{ fetch: fetchContent, problemOf: writtenPathProblem },
  })
  try {
    const { exitCode, stdout, stderr } = await createShell(overlay, timeoutMs).exec(command, { rawScript: true })
    if (Date.now() - startedAt >= timeoutMs) return { outcome: 'late' }
    return {
      outcome: 'exited',
      exitCode,
      stdout: cut(inOwnWords(stdout)),
      stderr: cut(inOwnWords(stderr)),
      changes: overlay.changes(),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { outcome: 'broken_off', reason: reason.slice(0, MAX_REASON_LENGTH).toWellFormed() }
  }
}

const asked = new Map<number, (bytes: Uint8Array) => void>()
let lastNumber = 0

/** Requests a content. If the file has a different content by now, no reply comes, and this process is killed. */
function fetchContent({ path, contentId }: Origin): Promise<Uint8Array> {
  const number = ++lastNumber
  send({ number, path, contentId })
  return new Promise((resolve) => asked.set(number, resolve))
}

function receive(reply: Reply): void {
  asked.get(reply.number)?.(reply.bytes)
  asked.delete(reply.number)
}

/** Cuts an output to the size of a result. */
function cut(output: string): Output {
  const sizeBytes = Buffer.byteLength(output)
  let text = output.slice(0, MAX_OUTPUT_BYTES)
  while (Buffer.byteLength(text) > MAX_OUTPUT_BYTES || Buffer.byteLength(JSON.stringify(text)) > MAX_JSON_BYTES) {
    text = text.slice(0, Math.floor(text.length * 0.9))
  }
  return { text: text.toWellFormed(), omittedBytes: sizeBytes - Buffer.byteLength(text) }
}

const sendToParent = process.send?.bind(process)
const send = (message: Question | Answer | Ready) => sendToParent?.(message)

setPriority(NICENESS)
// The signals reach the whole process group, as for Ctrl-C. The parent decides when its commands end.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
// Without its parent, nobody receives the result.
process.on('disconnect', () => process.exit())
process.on('message', async (message: Command | Reply) => {
  if ('number' in message) receive(message)
  else send(await answer(message))
})
send({ is: 'ready' })
