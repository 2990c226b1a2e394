import type { FileInfo } from '../../../../../contract/files.ts'
import { FilePath } from '../../../../../contract/kit/file-paths.ts'
import type { Pages } from '../../../../kit/lists.ts'
import { type Tool, ToolError } from '../../capability.ts'
import { FILE_TOOL_MS, parsePath, pathSchema, requireStat } from './paths.ts'

const DEFAULT_ENTRIES = 200
const MAX_ENTRIES = 1000
/** Size limit of the entries' JSON. */
const MAX_BYTES = 100 * 1024

export const listDirectory: Tool = {
  name: 'list_directory',
  displayName: 'List a directory',
  description:
    'Lists the files and directories in a directory of the session: directories first, then by path; by path alone when recursive. next_offset is where to go on; it is null at the end.',
  parameters: {
    type: 'object',
    properties: {
      path: pathSchema('The absolute path of the directory. Default: "/".'),
      recursive: { type: 'boolean', description: 'Whether to list everything below it, too. Default: false.' },
      offset: { type: 'integer', minimum: 0, description: 'How many entries to skip. Default: 0.' },
      limit: {
        type: 'integer',
        minimum: 1,
        description: `How many entries to list, at most ${MAX_ENTRIES}. Default: ${DEFAULT_ENTRIES}.`,
      },
    },
    additionalProperties: false,
  },
  timeoutMs: FILE_TOOL_MS,
  mayRunAgain: true,
  async run({ path: listed = '/', recursive, offset: skipped = 0, limit = DEFAULT_ENTRIES }, { files }) {
    const path = parsePath(FilePath, listed)
    const offset = Number(skipped)
    const { is_directory } = await requireStat(files, path)
    if (!is_directory) throw new ToolError(`${path} is a file, not a directory; read_file reads it.`)
    const pages = files.list(path, recursive === true ? 'subtree' : 'children')
    const { entries, hasMore } = await take(pages, offset, Math.min(Number(limit), MAX_ENTRIES))
    return { value: { path, entries, next_offset: hasMore ? offset + entries.length : null } }
  },
}

type Entry = ReturnType<typeof toEntry>

const toEntry = ({ path, is_directory, is_readonly, size_bytes }: FileInfo) =>
  is_directory
    ? { path, type: 'directory' }
    : { path, type: 'file', size_bytes, ...(is_readonly ? { is_readonly } : {}) }

/** Takes entries from an offset within both limits, and reads one further to see whether there are more. */
async function take(pages: Pages<FileInfo>, offset: number, limit: number) {
  const entries: Entry[] = []
  let bytes = 0
  let passed = 0
  for await (const page of pages) {
    for (const file of page) {
      if (passed++ < offset) continue
      const entry = toEntry(file)
      bytes += Buffer.byteLength(JSON.stringify(entry))
      if (entries.length === limit || (bytes > MAX_BYTES && entries.length > 0)) return { entries, hasMore: true }
      entries.push(entry)
    }
  }
  if (entries.length === 0 && offset > 0)
    throw new ToolError(`offset is ${offset}, but there are only ${passed} entries.`)
  return { entries, hasMore: false }
}
