import { addressOf, auth } from '../service.ts'

const MAX_LINE = 72

/** Returns an object as JSON with a line for each of its fields. */
const linesOf = (body: object): string =>
  `{\n${Object.entries(body)
    .map(([name, value]) => `  "${name}": ${JSON.stringify(value)}`)
    .join(',\n')}\n}`

/** Returns the shell command that creates a thing at a path of the API. */
export function commandFor(path: string, body: object): string {
  const key = auth.value?.mode === 'none' ? '' : ` \\\n  -H "authorization: Bearer $API_KEY"`
  const line = JSON.stringify(body)
  const text = (line.length <= MAX_LINE ? line : linesOf(body)).replaceAll("'", "'\\''")
  return `curl -s "${addressOf(path)}"${key} \\\n  -H 'content-type: application/json' -d '${text}'`
}
