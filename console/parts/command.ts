import { addressOf, auth } from '../service.ts'

/** Returns the shell command that creates a thing at a path of the API. */
export function commandFor(path: string, body: object): string {
  const key = auth.value?.mode === 'none' ? '' : ` \\\n  -H "authorization: Bearer $API_KEY"`
  const text = JSON.stringify(body, null, 2).replaceAll("'", "'\\''")
  return `curl -s "${addressOf(path)}"${key} \\\n  -H 'content-type: application/json' -d '${text}'`
}
