import type { Agent } from '../../../contract/agents.ts'
import type { ToolDefinition } from '../../../contract/tools.ts'
import { type Json, type JsonObject, toJson, writeYamlMap } from './write-yaml.ts'

export type RenderedAgent = Pick<
  Agent,
  | 'name'
  | 'description'
  | 'system_prompt'
  | 'default_model_id'
  | 'missing_model'
  | 'tags'
  | 'capabilities'
  | 'tools'
  | 'limits'
  | 'output_schema'
>

/**
 * Maximum number of values written as YAML. Larger front matter is a line of JSON, because that much YAML is slow to
 * read.
 */
const MAX_YAML_VALUES = 10_000
const MAX_SLUG_LENGTH = 100

/**
 * Renders an agent as Markdown with YAML front matter, which parseAgentDocument reads as the same agent. Default values
 * are omitted.
 */
export function renderAgentDocument(fields: RenderedAgent): string {
  // Reading trims the body, which must not change the prompt.
  const isBody = fields.system_prompt !== '' && fields.system_prompt.trim() === fields.system_prompt
  const frontMatter = listFields(fields, isBody ? undefined : fields.system_prompt)
  const isLarge = countValues(frontMatter, MAX_YAML_VALUES) > MAX_YAML_VALUES
  const head = isLarge ? `${toJson(frontMatter)}\n` : writeYamlMap(frontMatter)
  return `---\n${head}---\n${isBody ? `\n${fields.system_prompt}\n` : ''}`
}

/** Returns a file name made of the agent's name in ASCII letters and digits, with hyphens between words. */
export function documentFileName(name: string): string {
  const words = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .match(/[a-z0-9]+/g)
  const slug = (words ?? ['agent']).join('-').slice(0, MAX_SLUG_LENGTH)
  return `${slug.replace(/-$/, '')}.md`
}

const listFields = (fields: RenderedAgent, systemPrompt: string | undefined): JsonObject => ({
  name: fields.name,
  description: fields.description ?? undefined,
  default_model_id: fields.default_model_id ?? undefined,
  missing_model: fields.missing_model,
  tags: unlessEmpty(fields.tags),
  limits: Object.keys(fields.limits).length === 0 ? undefined : fields.limits,
  capabilities: unlessEmpty(fields.capabilities.map(shortCapability)),
  tools: unlessEmpty(fields.tools.map(parametersLast)),
  // Parsed from JSON, like a config.
  output_schema: (fields.output_schema as JsonObject | null | undefined) ?? undefined,
  system_prompt: systemPrompt,
})

const unlessEmpty = (list: Json[]): Json[] | undefined => (list.length === 0 ? undefined : list)

/** Shortens a capability that has only a ref to the ref. A config of null is kept. */
const shortCapability = ({ ref, config, missing }: Agent['capabilities'][number]): Json =>
  config === undefined && missing === undefined
    ? ref
    : {
        ref,
        // Parsed from JSON, for which zod's type is unknown.
        ...(config === undefined ? {} : { config: config as Json }),
        ...(missing === undefined ? {} : { missing }),
      }

/** Moves the parameters after the short fields. */
function parametersLast({ parameters, ...rest }: ToolDefinition): Json {
  // Parsed from JSON, like a config.
  return { ...rest, parameters: parameters as JsonObject }
}

/** Counts the values in a tree. Stops counting above `most`. */
function countValues(root: Json | undefined, most: number): number {
  const left = [root]
  let count = 0
  while (left.length > 0 && count <= most) {
    const value = left.pop()
    count++
    if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) left.push(inner)
  }
  return count
}
