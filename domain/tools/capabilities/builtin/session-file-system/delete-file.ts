import { DeletedFilePath } from '../../../../../contract/kit/file-paths.ts'
import type { Tool } from '../../capability.ts'
import { FILE_TOOL_MS, parsePath, pathSchema } from './paths.ts'

export const deleteFile: Tool = {
  name: 'delete_file',
  displayName: 'Delete a file',
  description: 'Deletes a file or a directory of the session. deleted is false when there was none.',
  parameters: {
    type: 'object',
    properties: {
      path: pathSchema('The absolute path of the file or directory.'),
      recursive: {
        type: 'boolean',
        description: 'Must be true to delete a directory with everything in it. Default: false.',
      },
    },
    required: ['path'],
    additionalProperties: false,
  },
  timeoutMs: FILE_TOOL_MS,
  mayRunAgain: true,
  async run({ path: deleted, recursive }, { files }) {
    const path = parsePath(DeletedFilePath, deleted)
    const changed = await files.change([{ do: 'delete', path, isRecursive: recursive === true }])
    // A repeated call has deleted it before, and does not know how many files.
    return { value: { path, deleted: changed.outcome === 'repeated' || changed.deleted > 0 } }
  },
}
