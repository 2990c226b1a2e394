/** Answer with an HTTP status that says nothing of the protocol. */
export class StatusError extends Error {
  override name = 'StatusError'
  readonly status: number
  /** Seconds after which the server asks to try again. */
  readonly retryAfterSecs: number | undefined

  constructor({ status, headers }: Response) {
    super(`The server answered with the status ${status}.`)
    this.status = status
    const seconds = headers.get('retry-after') ?? ''
    this.retryAfterSecs = /^\d{1,7}$/.test(seconds) ? Number(seconds) : undefined
  }
}
