import type { CreateFileRequest, FileInfo, UpdateFileRequest } from '../../../contract/files.ts'
import { createOnce } from '../../kit/create-once.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { changeFilesNow } from './change.ts'
import { contentOf, type GivenContent } from './content.ts'
import type { FileChange } from './file-change.ts'
import { presentChanged } from './present.ts'
import { describeFile, findFileById } from './read.ts'

/**
 * Creates a file or a directory, or returns the file or directory of an earlier run. An existing directory is left
 * unchanged. Throws `conflict`, `invalid`, `too_large` and `not_found`.
 */
export function createFile(
  deps: Deps,
  scope: SessionScope,
  path: string,
  { is_directory, is_readonly, ...given }: CreateFileRequest & GivenContent,
  attempt: CreationAttempt,
): Promise<FileInfo> {
  if (is_directory === true) return create(deps, scope, attempt, (id) => ({ do: 'make_directory', path, id }))
  const parsed = contentOf(deps.quotas.files.maxBytes, given)
  const isReadonly = is_readonly ?? false
  return create(deps, scope, attempt, (id) => ({ do: 'write', if: 'absent', path, ...parsed, isReadonly, id }))
}

/** Copies a file. Throws `not_found`, `conflict` and `invalid`. */
export const copyFile = (
  deps: Deps,
  scope: SessionScope,
  from: string,
  to: string,
  attempt: CreationAttempt,
): Promise<FileInfo> => create(deps, scope, attempt, (id) => ({ do: 'copy', from, to, id }))

const create = (
  deps: Deps,
  scope: SessionScope,
  attempt: CreationAttempt,
  toChange: (id: string) => FileChange,
): Promise<FileInfo> =>
  createOnce(attempt, {
    find: (id) => findFileById(deps, scope, id),
    insert: async (id) => presentChanged((await changeFilesNow(deps, scope, [toChange(id)])).file),
  })

/**
 * Replaces a file's content, its protection, or both. Throws `not_found`, `invalid`, `too_large` and `conflict`.
 */
export async function updateFile(
  deps: Deps,
  scope: SessionScope,
  path: string,
  { is_readonly, ...given }: UpdateFileRequest & GivenContent,
): Promise<FileInfo> {
  const isReadonly = is_readonly ?? undefined
  const hasContent = given.bytes !== undefined || typeof given.content === 'string'
  if (!hasContent && isReadonly === undefined) return describeFile(deps, scope, path)
  const change: FileChange = hasContent
    ? {
        do: 'write',
        if: 'present',
        path,
        ...contentOf(deps.quotas.files.maxBytes, given),
        ...(isReadonly === undefined ? {} : { isReadonly }),
      }
    : { do: 'set_readonly', path, isReadonly: isReadonly === true }
  return presentChanged((await changeFilesNow(deps, scope, [change])).file)
}

/** Moves a file, or a directory with everything in it. Throws `not_found`, `conflict` and `invalid`. */
export const moveFile = async (deps: Deps, scope: SessionScope, from: string, to: string): Promise<FileInfo> =>
  presentChanged((await changeFilesNow(deps, scope, [{ do: 'move', from, to }])).file)

/** Deletes a file or a directory. False if it does not exist. Throws `invalid` and `not_found`. */
export async function deleteFile(
  deps: Deps,
  scope: SessionScope,
  path: string,
  { isRecursive }: { isRecursive: boolean },
): Promise<boolean> {
  const { deleted } = await changeFilesNow(deps, scope, [{ do: 'delete', path, isRecursive }])
  return deleted > 0
}
