import { writtenPathProblem } from '../../../../contract/kit/file-paths.ts'
import { FileChanged } from '../../../session-data/files/change.ts'
import type { FileChange } from '../../../session-data/files/file-change.ts'
import type { SessionFiles } from '../../../session-data/files/session-files.ts'
import { type CommandResult, MAX_WRITTEN_BYTES } from './command.ts'
import type { BashProcesses } from './processes.ts'

/** Error of a command that was stopped; the message says why. */
export class CommandStopped extends Error {
  override name = 'CommandStopped'
}

const STOPPED = {
  late: 'The command took too long and was stopped',
  out_of_memory: 'The command needed too much memory and was stopped',
  busy: 'Too many commands are being run; try again later',
}

type Options = { command: string; timeoutMs: number; organizationId: string }

/**
 * Runs a command over the current files. Changes nothing: the result has the changes to make. Throws CommandStopped,
 * FileChanged, or the signal's reason when it aborts.
 */
export async function runCommand(
  processes: BashProcesses,
  files: SessionFiles,
  { command, timeoutMs, organizationId }: Options,
  signal: AbortSignal,
): Promise<CommandResult & { outcome: 'exited' }> {
  const read = async ({ path, contentId }: { path: string; contentId: string }) => {
    const file = await files.read(path)
    if (file?.contentId !== contentId) throw new FileChanged(path)
    return file.bytes
  }
  const { maxBytes: maxFileBytes, listTree } = files
  const ran = await processes.run({ organizationId, command, timeoutMs, maxFileBytes, listTree, read }, signal)
  if (ran.outcome === 'broken_off') throw new CommandStopped(`bash broke off: ${ran.reason}`)
  if (ran.outcome !== 'exited') throw new CommandStopped(STOPPED[ran.outcome])
  checkChanges(ran.changes, files.maxBytes)
  return ran
}

/** Repeats the process's checks, because a script that took it over could return anything. */
export function checkChanges(changes: FileChange[], maxFileBytes: number): void {
  let writtenBytes = 0
  for (const change of changes) {
    const isWritten = change.do === 'write' || change.do === 'make_directory' || change.do === 'move'
    const problem = isWritten ? writtenPathProblem('path' in change ? change.path : change.to) : undefined
    if (problem !== undefined) throw new Error(`A bash process returned a path that ${problem}.`)
    const sizeBytes = change.do === 'write' ? change.bytes.length : 0
    writtenBytes += sizeBytes
    if (sizeBytes > maxFileBytes || writtenBytes > MAX_WRITTEN_BYTES) {
      throw new Error('A bash process returned more bytes than may be written.')
    }
  }
}
