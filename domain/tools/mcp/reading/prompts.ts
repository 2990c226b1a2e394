import { isRecord } from '../../../../lib/is-record.ts'
import type { Visit } from '../protocol/client.ts'
import { toLine } from '../protocol/text.ts'
import { type McpMessage, partsOf, toMessage } from './contents.ts'
import { descriptionOf, isUnknown, keyOf, type Listed, NONE, readPages } from './read-pages.ts'

type Argument = { name: string; description: string | undefined; required: boolean }
export type McpPrompt = {
  name: string
  title: string | undefined
  description: string | undefined
  arguments: Argument[]
}

export type McpPromptResult = { description: string | undefined; messages: McpMessage[] }

const MAX_ARGUMENTS = 100

const PROMPTS = {
  method: 'prompts/list',
  key: 'prompts',
  toItem: (fields: Record<string, unknown>): McpPrompt | undefined => {
    const name = keyOf(fields.name)
    const listed: unknown[] = Array.isArray(fields.arguments) ? fields.arguments : []
    const args = listed.map(toArgument).filter((argument) => argument !== undefined)
    if (name === undefined || args.length !== listed.length || args.length > MAX_ARGUMENTS) return undefined
    return { name, ...descriptionOf(fields), arguments: args }
  },
}

function toArgument(value: unknown): Argument | undefined {
  const fields = isRecord(value) ? value : {}
  const name = keyOf(fields.name)
  const { description } = descriptionOf(fields)
  return name === undefined ? undefined : { name, description, required: fields.required === true }
}

export const LIST_PROMPTS: Visit<Listed<McpPrompt>> = {
  late: 'did not list its prompts',
  large: 'listed its prompts in',
  run: async (server) => (server.offers('prompts') ? readPages(server, PROMPTS) : NONE),
}

/** Prompt with its arguments filled in. `refusal`: words of a server that does not take the arguments. */
export type FilledPrompt = McpPromptResult | { refusal: string } | undefined

/** Fills in a prompt. Undefined if the server does not know it. */
export const fillPrompt = (name: string, args: Record<string, string>): Visit<FilledPrompt> => ({
  late: 'did not send the prompt',
  large: 'sent a prompt in',
  run: async (server) => {
    if (!server.offers('prompts')) return undefined
    try {
      const result = await server.ask('prompts/get', { name, arguments: args })
      return { description: descriptionOf(result).description, messages: partsOf(result.messages, toMessage) }
    } catch (error) {
      if (!isUnknown(error)) throw error
      // The code for an unknown prompt is also the code for wrong arguments.
      const { items } = await readPages(server, PROMPTS)
      const isListed = items.some((prompt) => prompt.name === name)
      return isListed ? { refusal: toLine(server.redact(error.message)) } : undefined
    }
  },
})
