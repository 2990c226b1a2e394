import { FilePath } from '../../../../../contract/kit/file-paths.ts'
import { isText } from '../../../../session-data/files/content.ts'
import type { WholeFile } from '../../../../session-data/files/file-store.ts'
import { type Tool, ToolError } from '../../capability.ts'
import { FILE_TOOL_MS, parsePath, pathSchema, requireFile } from './paths.ts'
import { takeLines } from './text-lines.ts'

const DEFAULT_LINES = 2000
/** Size limit of a part's text, as JSON. */
const MAX_TEXT_BYTES = 100 * 1024
/** Size limit of a part of a binary file. Divisible by 3, so that parts in base64 can be joined. */
const MAX_BINARY_BYTES = 75_000

type Part = { offset: number | undefined; limit: number | undefined }

/**
 * Reading a part counts as having seen the file: the agent knows its version, and old_text of an edit must match
 * anyway. Otherwise a file too large for one result could never be edited.
 */
export const readFile: Tool = {
  name: 'read_file',
  displayName: 'Read a file',
  description: `Reads a file of the session: text by lines, as they are, with their line ends; anything else in base64, by bytes. At most ${DEFAULT_LINES} lines unless limit says otherwise, and ${MAX_TEXT_BYTES / 1024} KiB. next_offset is where to go on; it is null at the end.`,
  parameters: {
    type: 'object',
    properties: {
      path: pathSchema('The absolute path of the file, such as "/notes/plan.md".'),
      offset: {
        type: 'integer',
        minimum: 0,
        description: 'Of text the first line to read; lines are counted from 1. Of base64 the first byte, from 0.',
      },
      limit: {
        type: 'integer',
        minimum: 1,
        description: `How many lines to read, or bytes where the content is given in base64. Default: ${DEFAULT_LINES} lines.`,
      },
    },
    required: ['path'],
    additionalProperties: false,
  },
  timeoutMs: FILE_TOOL_MS,
  mayRunAgain: true,
  async run({ path, offset, limit }, { files }) {
    const file = await requireFile(files, parsePath(FilePath, path))
    const part = { offset: toNumber(offset), limit: toNumber(limit) }
    const content = isText(file.bytes) ? readText(file, part) : readBinary(file, part)
    await files.markSeen(file)
    return { value: { path: file.path, ...content, size_bytes: file.bytes.length } }
  },
}

const toNumber = (value: unknown): number | undefined => (value === undefined ? undefined : Number(value))

function readText({ path, bytes }: WholeFile, { offset, limit = DEFAULT_LINES }: Part) {
  const first = Math.max(offset ?? 1, 1)
  const taken = takeLines(bytes, { first, limit, maxBytes: MAX_TEXT_BYTES })
  if (taken === undefined) throw new ToolError(`${path} has no line ${first}; it has fewer lines.`)
  const { content, lines, totalLines, isCut } = taken
  const next = first + lines
  const notice = `Line ${first} is too long: only its first ${Buffer.byteLength(content)} bytes are here. next_offset is the line after it.`
  return {
    encoding: 'text',
    content,
    first_line: first,
    total_lines: totalLines,
    next_offset: next <= totalLines ? next : null,
    ...(isCut ? { notice } : {}),
  }
}

function readBinary({ path, bytes }: WholeFile, { offset = 0, limit = MAX_BINARY_BYTES }: Part) {
  if (offset >= bytes.length) throw new ToolError(`${path} has no byte ${offset}; it has ${bytes.length} bytes.`)
  const end = Math.min(offset + Math.min(limit, MAX_BINARY_BYTES), bytes.length)
  return {
    encoding: 'base64',
    content: bytes.toString('base64', offset, end),
    next_offset: end < bytes.length ? end : null,
  }
}
