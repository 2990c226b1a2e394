/** Answer with an HTTP status outside the protocol. */
export class StatusError extends Error {
  override name = 'StatusError'
  readonly status: number
  /** Body of a short answer in plain text or JSON, else ''. */
  readonly text: string
  /** Delay in seconds that the server asks for. */
  readonly retryAfterSecs: number | undefined

  constructor({ status, headers }: Response, text: string) {
    super(`The server answered with the status ${status}.`)
    this.status = status
    this.text = text
    const seconds = headers.get('retry-after') ?? ''
    this.retryAfterSecs = /^\d{1,7}$/.test(seconds) ? Number(seconds) : undefined
  }
}
