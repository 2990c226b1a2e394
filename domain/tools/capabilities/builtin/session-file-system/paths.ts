import type { FilePath } from '../../../../../contract/kit/file-paths.ts'
import { DomainError } from '../../../../kit/errors.ts'
import type { WholeFile } from '../../../../session-data/files/file-store.ts'
import type { SessionFiles } from '../../../../session-data/files/session-files.ts'
import { ToolError } from '../../capability.ts'

/** JSON Schema of a path. `parsePath` applies the contract's rules for paths. */
export const pathSchema = (description: string) => ({ type: 'string', maxLength: 4096, description })

/** Time limit of the tools, equal to the limit of a query. */
export const FILE_TOOL_MS = 30_000

/** Normalizes and checks a path of a call. Throws `ToolError`. */
export function parsePath(schema: typeof FilePath, path: unknown): string {
  const parsed = schema.safeParse(path)
  if (parsed.success) return parsed.data
  throw new ToolError(`path ${parsed.error.issues[0]?.message ?? 'is wrong'}.`)
}

/** Reads a file. Throws `ToolError` for a missing file and a directory. */
export async function requireFile(files: SessionFiles, path: string): Promise<WholeFile> {
  const file = await files.read(path)
  if (file !== undefined) return file
  const { is_directory } = await requireStat(files, path)
  if (is_directory) throw new ToolError(`${path} is a directory; list_directory shows what is in it.`)
  throw new ToolError(`${path} has been written only now; call again.`)
}

/** Describes a file or directory. Throws `ToolError` if it does not exist. */
export async function requireStat(files: SessionFiles, path: string) {
  try {
    return await files.stat(path)
  } catch (error) {
    if (!(error instanceof DomainError) || error.kind !== 'not_found') throw error
    throw new ToolError(`There is no file or directory ${path}; list_directory shows what there is.`)
  }
}
