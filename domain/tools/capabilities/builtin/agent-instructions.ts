import { characterStart } from '../../../../lib/utf8.ts'
import { isText } from '../../../session-data/files/content.ts'
import type { FileBeginning } from '../../../session-data/files/session-files.ts'
import type { Capability } from '../capability.ts'

const PATH = '/AGENTS.md'
const MAX_BYTES = 32 * 1024

/** Returns the prompt for the file. Empty for a binary or blank file. */
function instruct({ bytes, sizeBytes }: FileBeginning): string {
  const shown = bytes.length > MAX_BYTES ? cut(bytes) : bytes
  const text = shown.toString().trim()
  if (text === '' || !isText(shown)) return ''
  const rest = `\n\n[${PATH} has ${sizeBytes} bytes; these are the first ${shown.length}. The tool read_file reads the rest.]`
  return `The instructions for this session, from its file ${PATH}:\n\n${text}${bytes.length > MAX_BYTES ? rest : ''}`
}

/** Cuts at the end of a line, or within a long last line at the end of a character. */
function cut(bytes: Buffer): Buffer {
  const lineEnd = bytes.lastIndexOf('\n', MAX_BYTES - 1) + 1
  return bytes.subarray(0, lineEnd > MAX_BYTES / 2 ? lineEnd : characterStart(bytes, MAX_BYTES))
}

export const agentInstructions: Capability = {
  id: 'agent_instructions',
  name: 'Agent instructions',
  description: "Puts the AGENTS.md of the session's files into the prompt.",
  status: 'available',
  category: 'files',
  icon: 'file-text',
  dependencies: [],
  features: [],
  systemPrompt: async ({ readFile }) => {
    // One more byte reveals a longer file.
    const file = await readFile(PATH, MAX_BYTES + 1)
    return file === undefined ? '' : instruct(file)
  },
  tools: [],
}
