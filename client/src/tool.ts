import type { ClientSideTool, RequestedCall } from './generated/types.gen.ts'

/** Schema of a library such as zod: https://standardschema.dev. */
export type StandardSchema<Output = unknown> = {
  readonly '~standard': {
    validate(value: unknown): Outcome<Output> | Promise<Outcome<Output>>
    readonly jsonSchema: { input(options: { target: 'draft-2020-12' }): Record<string, unknown> }
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}
type Outcome<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }
/** JSON Schema of an object. It must be written in the tool's definition, so that its types are inferred. */
export type JsonSchema = { readonly type: 'object'; readonly [keyword: string]: unknown }

/** Type of the values of a schema, from its types, properties, items and enums. */
export type FromSchema<S> = S extends { const: infer C }
  ? C
  : S extends { enum: readonly (infer E)[] }
    ? E
    : S extends { type: infer T }
      ? FromType<T, S>
      : unknown
type FromType<T, S> = T extends readonly (infer One)[]
  ? FromType<One, S>
  : T extends 'string'
    ? string
    : T extends 'number' | 'integer'
      ? number
      : T extends 'boolean'
        ? boolean
        : T extends 'null'
          ? null
          : T extends 'array'
            ? (S extends { items: infer I } ? FromSchema<I> : unknown)[]
            : T extends 'object'
              ? FromObject<S>
              : unknown
type FromObject<S> = S extends { properties: infer P }
  ? { [K in keyof P as K extends RequiredOf<S> ? K : never]: FromSchema<P[K]> } & {
      [K in keyof P as K extends RequiredOf<S> ? never : K]?: FromSchema<P[K]>
    }
  : Record<string, unknown>
type RequiredOf<S> = S extends { required: readonly (infer R)[] } ? R : never

export type ArgumentsOf<S> = S extends StandardSchema<infer Output> ? Output : FromSchema<S>

/** Tool with its definition. `toolDefinitions` converts it for an agent or a session. */
export type DefinedTool = Pick<ClientSideTool, 'description' | 'parameters'> & {
  run(args: Record<string, unknown>, call: RequestedCall): unknown
}

/**
 * Defines a tool of the client, whose arguments have the type of its parameters: either a JSON Schema, which the
 * service checks, or the schema of a library, which checks and may change the arguments here.
 */
export function defineTool<const S extends JsonSchema | StandardSchema>(tool: {
  description: string
  parameters: S
  run(args: ArgumentsOf<S>, call: RequestedCall): unknown
}): DefinedTool {
  const { description, parameters } = tool
  if (!isStandard(parameters)) {
    // The service has checked the arguments against the schema that gives their type.
    return { description, parameters, run: (args, call) => tool.run(args as ArgumentsOf<S>, call) }
  }
  const { validate, jsonSchema } = parameters['~standard']
  return {
    description,
    parameters: jsonSchema.input({ target: 'draft-2020-12' }),
    run: async (args, call) => {
      const outcome = await validate(args)
      if (outcome.issues) throw new Error(outcome.issues.map(sentenceOf).join('; '))
      // The schema returned the value.
      return tool.run(outcome.value as ArgumentsOf<S>, call)
    },
  }
}

const isStandard = (schema: JsonSchema | StandardSchema): schema is StandardSchema => '~standard' in schema

function sentenceOf({ message, path = [] }: { message: string; path?: readonly unknown[] | undefined }): string {
  const keys = path.map((part) => (typeof part === 'object' && part !== null && 'key' in part ? part.key : part))
  return [keys.join('.'), message].filter(Boolean).join(': ')
}

/** Returns the definitions of tools for `tools` of an agent or a session. */
export const toolDefinitions = (tools: Record<string, DefinedTool>): (ClientSideTool & { type: 'client_side' })[] =>
  Object.entries(tools).map(([name, { description, parameters }]) => ({
    type: 'client_side',
    name,
    description,
    parameters,
  }))
