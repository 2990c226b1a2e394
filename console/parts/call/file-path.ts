import { link } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'

/** Tools of the service whose paths are files of the session, once they have succeeded. */
const FILE_TOOLS = ['read_file', 'write_file', 'edit_file', 'stat_file', 'list_directory', 'grep_files']

/** Reports whether a call has a path among the session's files. */
export const isOfFiles = (tool: string): boolean => FILE_TOOLS.includes(tool)

/** Path of a file, as a link to the session's files if the session is given. */
export function FilePath({ path, sessionId }: { path: string; sessionId: string | undefined }): VNode {
  if (sessionId === undefined || !path.startsWith('/')) return html`<code dir="auto">${path}</code>`
  const to = link('sessions', sessionId, 'files', ...path.split('/').filter(Boolean))
  return html`<a href=${to}><code dir="auto">${path}</code></a>`
}
