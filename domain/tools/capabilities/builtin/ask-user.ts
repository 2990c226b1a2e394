import { checkSchemas } from '../arguments/check.ts'
import { type Capability, type Tool, type ToolContext, ToolError } from '../capability.ts'
import { InputRequired } from '../questions.ts'

/** Name of the tool, by which its questions are known: their answers are compared with their schema. */
export const ASK_USER_TOOL = 'ask_user'

const MAX_QUESTION_LENGTH = 4000
const MAX_CHOICES = 50
const MAX_CHOICE_LENGTH = 200
/** Maximum length of the JSON of a form's schema. */
const MAX_SCHEMA_LENGTH = 10_000

type Schema = Record<string, unknown>

const askUser: Tool = {
  name: ASK_USER_TOOL,
  displayName: 'Ask the user',
  description:
    'Asks the user one question and waits for the answer. Give choices if there are a few possible answers, or schema for a form of several fields; with neither, the user answers in own words.',
  parameters: {
    type: 'object',
    properties: {
      question: { type: 'string', minLength: 1, maxLength: MAX_QUESTION_LENGTH },
      choices: {
        type: 'array',
        items: { type: 'string', minLength: 1, maxLength: MAX_CHOICE_LENGTH },
        minItems: 2,
        maxItems: MAX_CHOICES,
        uniqueItems: true,
        description: 'The possible answers.',
      },
      multiple: { type: 'boolean', description: 'Whether the user may pick several of the choices. Default: false.' },
      schema: {
        type: 'object',
        description:
          'JSON Schema of the answer: an object whose properties are texts, numbers, booleans, or enums, each with a title.',
      },
    },
    required: ['question'],
    additionalProperties: false,
  },
  // The wait for the user does not count.
  timeoutMs: 30_000,
  mayRunAgain: true,
  async run(args, run) {
    const answer = run.answers[0]?.answers.answer
    if (answer === undefined) {
      throw new InputRequired([{ key: 'answer', message: String(args.question), schema: await schemaOf(args, run) }])
    }
    if (answer.action !== 'accept') {
      return { value: { status: answer.action === 'decline' ? 'declined' : 'dismissed' } }
    }
    const { content = {} } = answer
    return { value: { status: 'answered', answer: args.schema === undefined ? content.answer : content } }
  },
}

/** Returns the schema of the answer. Throws ToolError for arguments that do not make one. */
async function schemaOf({ choices, multiple, schema }: Record<string, unknown>, run: ToolContext): Promise<Schema> {
  if (schema !== undefined) {
    if (choices !== undefined) throw new ToolError('Give either choices or schema.')
    return checkedSchema(schema as Schema, run)
  }
  if (choices === undefined) return formOf({ type: 'string', minLength: 1 })
  const choice = { type: 'string', enum: choices }
  return formOf(multiple === true ? { type: 'array', items: choice, minItems: 1, uniqueItems: true } : choice)
}

const formOf = (answer: Schema): Schema => ({
  type: 'object',
  properties: { answer: { title: 'Answer', ...answer } },
  required: ['answer'],
})

async function checkedSchema(schema: Schema, { threads, organizationId }: ToolContext): Promise<Schema> {
  const length = JSON.stringify(schema).length
  if (length > MAX_SCHEMA_LENGTH) {
    throw new ToolError(`The schema has ${length} characters of JSON; at most ${MAX_SCHEMA_LENGTH} can be asked for.`)
  }
  const { properties } = schema
  if (typeof properties !== 'object' || properties === null || Object.keys(properties).length === 0) {
    throw new ToolError('The schema needs properties: each is a field of the form.')
  }
  const [problem] = await checkSchemas(threads.schemas, [schema], organizationId)
  if (problem !== undefined) throw new ToolError(`The schema cannot be used: ${problem}.`)
  return { ...schema, type: 'object' }
}

export const askUserCapability: Capability = {
  id: 'ask_user',
  name: 'Ask the user',
  description: 'Lets the agent ask its user a question, with choices or a form, and wait for the answer.',
  status: 'available',
  category: 'utility',
  icon: 'message-circle-question',
  dependencies: [],
  features: [],
  systemPrompt: `Ask the user with ask_user when you cannot go on sensibly without a decision or a fact that only the user has. Ask
one thing at a time, and give choices where you can. If the user declines, go on without the answer or say why you cannot.`,
  tools: [askUser],
}
