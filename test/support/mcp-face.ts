import { Client, type ElicitResult, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { addressOf, call, headersOf, type Json, modelId, type Target } from './http.ts'

export type Era = 'legacy' | 'modern'

type Options = {
  era?: Era
  headers?: Record<string, string>
  /** Fills in the forms that the server has the user shown. Without it the client shows none. */
  fillIn?: (message: string) => ElicitResult
}

/** A client of the service's MCP server. */
export type FaceClient = { client: Client; tool(name: string, args: object, more?: object): Promise<Json> }

const open: Client[] = []

/** Connects the official client to /v1/mcp, in one of both protocols. */
export async function connectToFace(
  target: Target,
  { era = 'modern', headers, fillIn }: Options = {},
): Promise<FaceClient> {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } },
      ...(fillIn === undefined ? {} : { capabilities: { elicitation: {} } }),
    },
  )
  if (fillIn !== undefined) client.setRequestHandler('elicitation/create', ({ params }) => fillIn(params.message))
  const address = new URL(`${addressOf(target)}/v1/mcp`)
  const requestInit = { headers: { ...headersOf(target), ...headers } }
  await client.connect(new StreamableHTTPClientTransport(address, { requestInit }))
  open.push(client)
  return {
    client,
    tool: (name, args, more) => client.callTool({ name, arguments: { ...args } }, { timeout: 180_000, ...more }),
  }
}

/** Closes the clients that have been connected since the last time. */
export async function closeFaceClients(): Promise<void> {
  await Promise.all(open.splice(0).map((client) => client.close()))
}

let agents = 0

/** Creates an agent whose model plays an llmsim script. Returns its id and its unique name. */
export async function createScriptedAgent(
  target: Target,
  steps: object[],
  more: object = {},
  headers: Record<string, string> = {},
): Promise<{ id: string; name: string }> {
  const { status, body } = await call(
    target,
    'POST',
    '/v1/agents',
    {
      name: `Agent ${++agents}`,
      system_prompt: `Play the script.\n\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``,
      default_model_id: await modelId(target, 'llmsim-script', headers),
      ...more,
    },
    headers,
  )
  if (status !== 201) throw new Error(`agent: ${status} ${JSON.stringify(body)}`)
  return { id: body.id, name: body.name }
}

/** Sends a message of the protocol without a client. Returns the answer's status, headers and JSON, also of a stream. */
export async function postToFace(target: Target, message: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(`${addressOf(target)}/v1/mcp`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...headersOf(target),
      ...headers,
    },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  })
  const text = await answer.text()
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text
  const body: Json = data === '' ? undefined : JSON.parse(data)
  return { status: answer.status, headers: answer.headers, body }
}
