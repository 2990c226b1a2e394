import { WrittenFilePath } from '../../../../../contract/kit/file-paths.ts'
import { findBytes } from '../../../../../lib/find-bytes.ts'
import { FileChanged } from '../../../../session-data/files/change.ts'
import { isText } from '../../../../session-data/files/content.ts'
import type { WholeFile } from '../../../../session-data/files/file-store.ts'
import type { SessionFiles } from '../../../../session-data/files/session-files.ts'
import { type Tool, ToolError } from '../../capability.ts'
import { FILE_TOOL_MS, parsePath, pathSchema, requireFile } from './paths.ts'

/** Maximum attempts of an edit while others change the file: an answer has at most 128 calls, 16 at once. */
const MAX_ATTEMPTS = 20

export const editFile: Tool = {
  name: 'edit_file',
  displayName: 'Edit a file',
  description:
    'Replaces a piece of text in a file of the session. The piece must be there exactly once, so give enough of the lines around it. Everything else stays as it is.',
  parameters: {
    type: 'object',
    properties: {
      path: pathSchema('The absolute path of the file.'),
      old_text: {
        type: 'string',
        minLength: 1,
        description: 'The text to replace, exactly as it is in the file, with its spaces and line ends.',
      },
      new_text: { type: 'string', description: 'The text to put in its place; empty to remove it.' },
    },
    required: ['path', 'old_text', 'new_text'],
    additionalProperties: false,
  },
  timeoutMs: FILE_TOOL_MS,
  mayRunAgain: true,
  async run(args, { files, mayHaveRun }) {
    const path = parsePath(WrittenFilePath, args.path)
    const oldText = String(args.old_text)
    const newText = Buffer.from(String(args.new_text))
    if (oldText === args.new_text) throw new ToolError('old_text and new_text are the same; nothing would change.')
    if (mayHaveRun && (await files.hasChanged())) return { value: await describeEdited(files, path, newText) }
    for (let attempt = 1; ; attempt++) {
      try {
        return { value: await edit(files, path, oldText, newText) }
      } catch (error) {
        // Another edit of the same step came first. Reading the file again detects other changes.
        if (!(error instanceof FileChanged) || attempt === MAX_ATTEMPTS) throw error
      }
    }
  },
}

async function edit(files: SessionFiles, path: string, oldText: string, newText: Buffer) {
  const file = await requireFile(files, path)
  checkEditable(file)
  const { start, end } = await findOnce(file, oldText)
  const bytes = Buffer.concat([file.bytes.subarray(0, start), newText, file.bytes.subarray(end)])
  checkSize(files, path, bytes)
  const { isBase64, contentId: was } = file
  const changed = await files.change([{ do: 'write', if: 'present', path, bytes, isBase64, isSeen: true, was }])
  if (changed.outcome === 'repeated') return describeEdited(files, path, newText)
  return { path, size_bytes: bytes.length, line: lineOf(bytes, start) }
}

function checkEditable({ path, bytes, contentId, seenContentId, isReadonly }: WholeFile): void {
  if (isReadonly) throw new ToolError(`${path} is read-only: ${protectorOf(path)}. Write another file instead.`)
  if (!isText(bytes)) throw new ToolError(`${path} is not a text file; write_file replaces it as a whole.`)
  if (seenContentId !== null && seenContentId !== contentId) {
    throw new ToolError(`${path} has changed since it was read; read it again.`)
  }
}

const protectorOf = (path: string): string =>
  path.startsWith('/skills/') ? "it is a skill's file, or its user has protected it" : 'its user has protected it'

async function findOnce({ path, bytes }: WholeFile, text: string): Promise<{ start: number; end: number }> {
  const sought = Buffer.from(text)
  const { first, count } = await findBytes(bytes, sought)
  if (count === 0) {
    const hint =
      text.replaceAll('\r\n', '').includes('\n') && bytes.includes('\r\n') ? ' Its lines end with \\r\\n.' : ''
    throw new ToolError(`old_text is not in ${path}; read it again and copy the text exactly.${hint}`)
  }
  if (count > 1) {
    throw new ToolError(`old_text is ${count} times in ${path}; add lines around it so that it is there only once.`)
  }
  return { start: first, end: first + sought.length }
}

function checkSize({ maxBytes }: SessionFiles, path: string, { length }: Buffer): void {
  if (length > maxBytes) throw new ToolError(`${path} would have ${length} bytes; a file has at most ${maxBytes}.`)
}

/** Describes the current file after an edit by an earlier attempt of the call. It may have changed since. */
async function describeEdited(files: SessionFiles, path: string, newText: Buffer) {
  const file = await files.read(path)
  if (file === undefined) return { path, size_bytes: null, line: null }
  const { first } = newText.length === 0 ? { first: -1 } : await findBytes(file.bytes, newText)
  return { path, size_bytes: file.bytes.length, line: first < 0 ? null : lineOf(file.bytes, first) }
}

/** Returns the line of a position, counted from 1. */
function lineOf(bytes: Buffer, position: number): number {
  let line = 1
  for (let at = 0; at < position; at++) if (bytes[at] === 10) line++
  return line
}
