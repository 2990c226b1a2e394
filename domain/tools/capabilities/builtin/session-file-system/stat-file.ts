import { FilePath } from '../../../../../contract/kit/file-paths.ts'
import type { Tool } from '../../capability.ts'
import { FILE_TOOL_MS, parsePath, pathSchema, requireStat } from './paths.ts'

export const statFile: Tool = {
  name: 'stat_file',
  displayName: 'Describe a file',
  description: 'Describes a file or directory of the session: its size, its times, and whether it is read-only.',
  parameters: {
    type: 'object',
    properties: { path: pathSchema('The absolute path of the file or directory; "/" is the root.') },
    required: ['path'],
    additionalProperties: false,
  },
  timeoutMs: FILE_TOOL_MS,
  mayRunAgain: true,
  run: async ({ path }, { files }) => ({ value: await requireStat(files, parsePath(FilePath, path)) }),
}
