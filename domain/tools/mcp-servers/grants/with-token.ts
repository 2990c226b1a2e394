import type { Deps } from '../../deps.ts'
import type { McpEndpoint } from '../../mcp/protocol/client.ts'
import { McpRefused } from '../../mcp/protocol/refused.ts'
import type { UsedServer } from '../read-for-use.ts'
import { dropToken, readToken, replaceToken, wantScope } from './token.ts'

/** Lack of a token, or of a scope that the server wants. */
export class SignInNeeded extends Error {
  override name = 'SignInNeeded'
  readonly scope: string | undefined
  constructor(scope?: string) {
    super('The holder has to sign in at the MCP server.')
    this.scope = scope
  }
}

/**
 * Runs requests with the token of a holder, and once more with another one if the server refuses it. Throws
 * `SignInNeeded`, `SignInFailure` and the errors of the requests.
 */
export async function withToken<T>(
  deps: Deps,
  row: UsedServer,
  holder: string,
  endpoint: McpEndpoint,
  signal: AbortSignal,
  request: (endpoint: McpEndpoint) => Promise<T>,
): Promise<T> {
  let token = await readToken(deps, row, holder, signal)
  for (let isFirst = true; token !== undefined; isFirst = false) {
    const { accessToken } = token
    try {
      return await request({ ...endpoint, apiKey: accessToken, secrets: [...(endpoint.secrets ?? []), accessToken] })
    } catch (error) {
      if (!(error instanceof McpRefused)) throw error
      const { isScopeMissing, scope } = error.challenge
      if (isScopeMissing) {
        await wantScope(deps, row, holder, scope)
        throw new SignInNeeded(scope)
      }
      if (isFirst) token = await replaceToken(deps, row, holder, token, signal)
      else {
        await dropToken(deps, row, holder, token)
        token = undefined
      }
    }
  }
  throw new SignInNeeded()
}
