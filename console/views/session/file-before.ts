import { useLoad } from '../../load.ts'
import { api } from '../../service.ts'
import type { Asked } from './asked.ts'

/** Size up to which a file is read, to show what a call would change in it. */
const MAX_BYTES = 64 * 1024

/** Reads the file that a call would replace. Undefined for other calls, and for a new, large or binary file. */
export function useFileBefore(
  session_id: string,
  { name, arguments: given = {} }: Pick<Asked, 'name' | 'arguments'>,
  isWanted = true,
): string | undefined {
  const { path, content } = given
  const at =
    isWanted && name === 'write_file' && typeof path === 'string' && typeof content === 'string' ? path : undefined
  return useLoad(() => readBefore(session_id, at), [session_id, at]).value
}

async function readBefore(session_id: string, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  try {
    const stat = await api.files.stat({ session_id, path })
    if (stat.is_directory || stat.size_bytes > MAX_BYTES) return undefined
    const file = await api.files.get({ session_id, path: path.replace(/^\/+/, '') })
    return 'content' in file && file.encoding === 'text' ? (file.content ?? undefined) : undefined
  } catch {
    // The approval does not depend on it.
    return undefined
  }
}
