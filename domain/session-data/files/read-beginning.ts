import { DomainError } from '../../kit/errors.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { openFile } from './read.ts'
import type { FileBeginning } from './session-files.ts'

/** Reads at most `maxBytes` of a file. Undefined for a missing file and a directory. */
export async function readBeginning(
  deps: Deps,
  scope: SessionScope,
  path: string,
  maxBytes: number,
): Promise<FileBeginning | undefined> {
  const opened = await openIfThere(deps, scope, path)
  if (opened === undefined || opened === 'directory') return undefined
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of opened.chunks) {
    chunks.push(chunk)
    length += chunk.length
    if (length >= maxBytes) break
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), sizeBytes: opened.info.size_bytes }
}

/** Opens a file. Undefined if it does not exist. */
export async function openIfThere(deps: Deps, scope: SessionScope, path: string) {
  try {
    return await openFile(deps, scope, path)
  } catch (error) {
    if (error instanceof DomainError && error.kind === 'not_found') return undefined
    throw error
  }
}
