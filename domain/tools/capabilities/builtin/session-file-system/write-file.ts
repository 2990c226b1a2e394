import { WrittenFilePath } from '../../../../../contract/kit/file-paths.ts'
import { parseContent } from '../../../../session-data/files/content.ts'
import type { Tool } from '../../capability.ts'
import { FILE_TOOL_MS, parsePath, pathSchema } from './paths.ts'

export const writeFile: Tool = {
  name: 'write_file',
  displayName: 'Write a file',
  description:
    'Creates a file of the session, or replaces all of its content. Directories above it are made. To change a part of a file, use edit_file.',
  parameters: {
    type: 'object',
    properties: {
      path: pathSchema('The absolute path of the file. No part of it may begin with "_".'),
      content: { type: 'string', description: 'The whole content.' },
      encoding: {
        type: 'string',
        enum: ['text', 'base64'],
        description: 'How content is given: base64 for a binary file. Default: text.',
      },
    },
    required: ['path', 'content'],
    additionalProperties: false,
  },
  timeoutMs: FILE_TOOL_MS,
  mayRunAgain: true,
  async run({ path: written, content, encoding }, { files }) {
    const path = parsePath(WrittenFilePath, written)
    const parsed = parseContent(files.maxBytes, String(content), encoding === 'base64' ? 'base64' : 'text')
    // A repeated call has already written this.
    await files.change([{ do: 'write', path, ...parsed, isSeen: true }])
    return { value: { path, size_bytes: parsed.bytes.length } }
  },
}
