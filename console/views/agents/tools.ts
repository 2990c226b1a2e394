import type { ToolDefinition } from 'agent-session-client'

export type Runner = 'client' | 'approval' | 'service'

/** State of a tool in the form. */
export type Draft = {
  runner: Runner
  name: string
  description: string
  /** JSON schema of its arguments. */
  parameters: string
  /** The tool before the edit. */
  given: ToolDefinition | undefined
}

const EMPTY: Draft = { runner: 'client', name: '', description: '', parameters: '{}', given: undefined }

/** Templates of client-side tools. */
export const TEMPLATES: { label: string; draft: Draft }[] = [
  {
    label: 'Look something up',
    draft: {
      ...EMPTY,
      name: 'look_up',
      description: 'Looks something up in our system, and returns what it finds as text.',
      parameters: schemaOf({ query: 'What to look for, in a few words.' }),
    },
  },
  {
    label: 'Do something in your program',
    draft: {
      ...EMPTY,
      name: 'create_ticket',
      description: 'Creates a ticket for our team, and returns its number.',
      parameters: schemaOf({ title: 'One line.', details: 'What a colleague needs to know.' }),
    },
  },
]

function schemaOf(properties: Record<string, string>): string {
  const typed = Object.entries(properties).map(([name, description]) => [name, { type: 'string', description }])
  return JSON.stringify(
    { type: 'object', properties: Object.fromEntries(typed), required: Object.keys(properties) },
    null,
    2,
  )
}

/** Returns the drafts with one more, whose name none of the others has. */
export function withTemplate(drafts: Draft[], draft: Draft): Draft[] {
  const names = new Set(drafts.map(({ name }) => name))
  let name = draft.name
  for (let number = 2; names.has(name); number++) name = `${draft.name}_${number}`
  return [...drafts, { ...draft, name }]
}

export const draftsOf = (tools: ToolDefinition[]): Draft[] => tools.map(draftOf)

const draftOf = (given: ToolDefinition): Draft => ({
  runner: runnerOf(given),
  name: given.name,
  description: given.description,
  parameters: JSON.stringify(given.parameters, null, 2),
  given,
})

function runnerOf(tool: ToolDefinition): Runner {
  if (tool.type === 'client_side' || tool.policy === 'client_side') return 'client'
  return tool.policy === 'requires_approval' ? 'approval' : 'service'
}

/** Returns who runs a tool of a capability, as the drafts have it. */
export const chosenRunner = (drafts: Draft[], tool: ToolDefinition): Runner =>
  drafts.find(({ name }) => name === tool.name)?.runner ?? runnerOf(tool)

/** Chooses who runs a tool of a capability. A tool as its capability has it needs no draft. */
export function withRunner(drafts: Draft[], tool: ToolDefinition, runner: Runner): Draft[] {
  const before = drafts.find(({ name }) => name === tool.name)
  if (before?.given !== undefined) return drafts.map((draft) => (draft === before ? { ...draft, runner } : draft))
  const others = drafts.filter((draft) => draft !== before)
  return runner === runnerOf(tool) ? others : [...others, { ...EMPTY, name: tool.name, runner }]
}

/** Returns the drafts of tools that no chosen capability has and no client runs. */
export const otherDrafts = (drafts: Draft[], available: ToolDefinition[]): Draft[] =>
  drafts.filter(({ runner, name }) => runner !== 'client' && !available.some((tool) => tool.name === name))

/** Returns the agent's tools. Choices for tools whose capability is no longer chosen are left out unless they were saved. */
export function toolsOf(drafts: Draft[], available: ToolDefinition[]): ToolDefinition[] {
  const gone = new Set(otherDrafts(drafts, available).filter(({ given }) => given === undefined))
  return drafts.filter((draft) => !gone.has(draft)).map(toolOf)
}

function toolOf(draft: Draft): ToolDefinition {
  const { runner, name, description, parameters, given } = draft
  if (given !== undefined && JSON.stringify(draftOf(given)) === JSON.stringify(draft)) return given
  const fields = { name, description, parameters: read(name, parameters) }
  if (given?.type === 'temporal') return { ...given, policy: runner === 'approval' ? 'requires_approval' : 'auto' }
  const display = given?.display_name ? { display_name: given.display_name } : {}
  if (given?.type === 'client_side' && runner === 'client') return { ...given, ...fields }
  if (runner === 'client' && given === undefined) return { type: 'client_side', ...fields }
  const policy = { client: 'client_side', approval: 'requires_approval', service: 'auto' } as const
  return { type: 'builtin', ...fields, ...display, policy: policy[runner] }
}

function read(name: string, text: string): Record<string, unknown> {
  try {
    return JSON.parse(text.trim() === '' ? '{}' : text)
  } catch (error) {
    throw new Error(`The parameters of ${name} are not valid JSON: ${(error as Error).message}`)
  }
}
