import { z } from 'zod'
import { variableSections } from '../../platform/variables.ts'

const MiB = 1024 ** 2
const GiB = 1024 ** 3

const INTRODUCTION = `# Configuration

<!-- Written by \`npm run configuration\` from the descriptions in platform/variables.ts. -->

All configuration is by environment variables. An empty variable counts as absent. Each variable can be in a file instead:
\`AUTH_JWT_SECRET_FILE=/run/secrets/jwt\` names a file with the value, whose last line break does not count. A value of a wrong form, or a missing variable that
\`AUTH_MODE\` requires, ends the start with a sentence that names the variable.

\`npm start\` also reads \`POSTGRES_PORT\`, \`REDIS_PORT\`, \`TEMPORAL_PORT\` and \`TEMPORAL_UI_PORT\`, and \`npm run start:full\` also
\`IDENTITY_PROVIDER_PORT\`. They start only the services that have no address: if \`DATABASE_URL\`, \`REDIS_URL\` or \`TEMPORAL_ADDRESS\` is
set, that service is used as it is. Their \`LOG_LEVEL\` is \`warn\` unless it is given.
`

type Schema = {
  default?: unknown
  enum?: unknown[]
  minimum?: number
  exclusiveMinimum?: number | boolean
  maximum?: number
}

/** Returns docs/configuration.md. */
export const configurationPage = (): string =>
  [
    INTRODUCTION,
    ...variableSections.map(([title, variables]) =>
      [
        `## ${title}\n`,
        '| Variable | Default | Values | Meaning |',
        '| --- | --- | --- | --- |',
        ...Object.entries(variables).map(([name, variable]) => row(name, variable)),
        '',
      ].join('\n'),
    ),
  ].join('\n')

function row(name: string, variable: z.ZodType): string {
  const schema: Schema = z.toJSONSchema(variable, { io: 'input', unrepresentable: 'any' })
  return `| \`${name}\` | ${defaultOf(name, schema)} | ${valuesOf(name, schema)} | ${variable.description ?? ''} |`
}

function defaultOf(name: string, { default: value }: Schema): string {
  if (value === undefined || value === '') return ''
  return typeof value === 'number' ? numberOf(name, value) : `\`${value}\``
}

function valuesOf(name: string, { enum: values, minimum, maximum, exclusiveMinimum }: Schema): string {
  if (values) return values.map((value) => `\`${value}\``).join(', ')
  const least = minimum ?? (exclusiveMinimum === undefined ? undefined : `above ${exclusiveMinimum}`)
  if (least === undefined) return ''
  const isBounded = maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER
  return isBounded ? `${least} to ${numberOf(name, maximum)}` : `${least}${minimum === undefined ? '' : ' or more'}`
}

/** Returns a number as it is written in the environment, with its size beside a number of bytes. */
function numberOf(name: string, value: number): string {
  if (!name.endsWith('_BYTES') || value % MiB !== 0 || value === 0) return `${value}`
  return `${value} (${value % GiB === 0 ? `${value / GiB} GiB` : `${value / MiB} MiB`})`
}
