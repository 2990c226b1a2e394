import { extractWWWAuthenticateParams } from '@modelcontextprotocol/client'

/** What a server demands in a refusal: `scope`, and whether it lacks in the token. */
export type Challenge = { scope: string | undefined; isScopeMissing: boolean }

/** Answer with an HTTP status outside the protocol. */
export class StatusError extends Error {
  override name = 'StatusError'
  readonly status: number
  /** Body of a short answer in plain text or JSON, else ''. */
  readonly text: string
  /** Delay in seconds that the server asks for. */
  readonly retryAfterSecs: number | undefined
  /** Demand of a server at which one can sign in. */
  readonly challenge: Challenge

  constructor(answer: Response, text: string) {
    const { status, headers } = answer
    super(`The server answered with the status ${status}.`)
    this.status = status
    this.text = text
    const { scope, error } = extractWWWAuthenticateParams(answer)
    this.challenge = { scope, isScopeMissing: status === 403 && error === 'insufficient_scope' }
    const seconds = headers.get('retry-after') ?? ''
    this.retryAfterSecs = /^\d{1,7}$/.test(seconds) ? Number(seconds) : undefined
  }
}
