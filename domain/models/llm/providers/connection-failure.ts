import { OutgoingError } from '../../../../lib/outgoing/outgoing-error.ts'
import { ModelError } from '../model.ts'
import { toModelFailure } from '../outgoing-failure.ts'
import { PUBLIC_URLS } from './public-urls.ts'

export type Called = { providerName: string; baseUrl: string }

const MAX_CAUSES = 5

/** Returns what may be wrong with an address that was not found: nobody has entered a provider's own. */
const doubtAbout = (baseUrl: string): string =>
  Object.values(PUBLIC_URLS).includes(baseUrl) ? 'Can this service reach the internet?' : 'Is its base URL right?'

/** Sentences for the codes of Node.js, OpenSSL, undici and zlib. Their own messages contain addresses and jargon. */
const CONNECTION_FAILURES: [codes: RegExp, sentence: (name: string, baseUrl: string) => string][] = [
  [/^ECONNREFUSED$/, (name) => `${name} refused the connection. Is its base URL right, and does it run?`],
  [/^(ENOTFOUND|EAI_\w+)$/, (name, baseUrl) => `The address of ${name} was not found. ${doubtAbout(baseUrl)}`],
  [/^(ETIMEDOUT|UND_ERR_\w+_TIMEOUT)$/, (name) => `${name} did not answer in time.`],
  [/^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN)$/, (name) => `${name} cannot be reached over the network.`],
  [/^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/, (name) => `The connection to ${name} broke off.`],
  [/^(HPE_|HTTPParserError$)/, (name) => `${name} sent an answer that is not HTTP. Is its base URL right?`],
  [/CERT|SELF_SIGNED|VERIFY|^ERR_TLS_/, (name) => `The certificate of ${name} is not trusted.`],
  [/^(EPROTO|ERR_SSL_)/, (name) => `No secure connection to ${name} could be made.`],
  [/^(Z_|ERR__|ERR_BROTLI|ERR_ZSTD)/, (name) => `${name} sent an answer that cannot be read.`],
]

/** Converts an error of the connection. Drops its message, which may quote an address or a header. */
export function connectionError(error: unknown, { providerName, baseUrl }: Called): ModelError {
  const marks = marksOf(error)
  const known = CONNECTION_FAILURES.find(([codes]) => marks.some((mark) => codes.test(mark)))
  if (known !== undefined) return new ModelError(known[1](providerName, baseUrl), { retryable: true })
  const refused = causesOf(error).find((cause) => cause instanceof OutgoingError)
  if (refused !== undefined) return toModelFailure(refused)
  return new ModelError(`The connection to ${providerName} failed.`, { retryable: true })
}

/** Returns the codes and names of an error and its causes. undici's HTTP parser does not set a code for every fault. */
const marksOf = (error: unknown): string[] =>
  causesOf(error)
    .flatMap((cause) => ['code' in cause && cause.code, 'name' in cause && cause.name])
    .filter((mark) => typeof mark === 'string')

/** Returns an error and its causes, outermost first. */
export function causesOf(error: unknown): object[] {
  const causes: object[] = []
  let current = error
  while (typeof current === 'object' && current !== null && causes.length < MAX_CAUSES) {
    causes.push(current)
    current = 'cause' in current ? current.cause : undefined
  }
  return causes
}
