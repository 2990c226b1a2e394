import type { FullMode } from './full-mode.ts'

export type Addresses = {
  /** Address of the service, such as http://127.0.0.1:9300. */
  api: string
  /** API_PREFIX as it was given. */
  prefix: string
  temporalUiUrl?: string | undefined
  fullMode?: Pick<FullMode, 'description'> | undefined
}

/** Describes, for the terminal, where everything is and how to begin. */
export function describeAddresses({ api, prefix, temporalUiUrl, fullMode }: Addresses): string {
  const root = `${api}${withoutEnd(prefix)}/v1`
  return [
    '',
    `  Console      ${api}/console`,
    `  API          ${root}`,
    `  API docs     ${api}/docs`,
    ...(temporalUiUrl === undefined ? [] : [`  Temporal UI  ${temporalUiUrl}`]),
    ...(fullMode?.description ?? describeFirstSteps(root)),
    '',
    '  Ctrl-C stops everything; the data stays in .data/dev.',
    '',
  ].join('\n')
}

/** Removes the slashes at the end of API_PREFIX, as the service does. */
export const withoutEnd = (prefix: string): string => prefix.replace(/\/+$/, '')

function describeFirstSteps(root: string): string[] {
  const send = `curl -sX POST ${root}/sessions -H 'content-type: application/json' -d '{}'`
  const message = `{"message":{"content":[{"type":"text","text":"Hello"}]}}`
  const post = `curl -sNX POST "${root}/sessions/$SESSION/messages`
  return [
    '',
    '  Try it: create a session, send a message and wait for the answer, then send one and stream the answer.',
    '',
    `SESSION=$(${send} | grep -o '"id": *"[^"]*"' | head -n 1 | cut -d '"' -f 4)`,
    `${post}?wait=30" -H 'content-type: application/json' -d '${message}'`,
    `${post}" -H 'content-type: application/json' -H 'accept: text/event-stream' -d '${message}'`,
  ]
}
