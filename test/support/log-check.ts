import { type DestinationStream, pino } from 'pino'

/** Patterns that recognise a secret anywhere in a line. Every secret that tests make up contains one of the marks. */
const SECRETS = {
  // Access and refresh tokens are signed. The state of a sign-in is encrypted, so its second part is empty.
  'a token': /eyJ[\w-]{8,}\.[\w-]*\.[\w-]+/,
  'an API key': /\bask_[0-9a-f]{64}/,
  'a token of an invitation': /\binv_[0-9a-f]{64}/,
  "a user's password": /pw-of-a-test-/,
  "a password's hash": /\$argon2/,
  'the secret of tokens': /jwt-secret-of-tests-/,
  "an identity provider's secret": /secret-of-a-test/,
  'an address with a password': /\w:\/\/[^\s/:@"]*:[^\s/@"]+@/,
  'what somebody wrote': /text-of-a-test/,
  'a credential': /\b(Bearer|Basic|ApiKey) [\w.~+/=-]{16,}/i,
  "a model provider's key": /\bsk-\w/,
  "a webhook's secret": /\bwhsec_[\w+/]/,
  'a cookie': /\b(access_token|refresh_token|oauth_sign_in)=|cookie\\*"\s*:/i,
  'a field that has a secret':
    /("token|password|access_token|refresh_token|secret|client_secret|code_verifier|authorization|api_key|encryption_key)\\*"\s*:\s*\\*"[^"\\]/i,
} as const

/** Minimum length of a known secret. Shorter ones may be ordinary words. */
const MIN_SECRET_LENGTH = 8

export type LogCheck = DestinationStream & {
  /** Throws if the lines so far contain a secret, or report that an answer broke the contract. */
  expectNoSecrets(): void
}

/** Creates a log destination that searches each line for secrets, by pattern and by the given values. */
export function createLogCheck(known: (string | undefined)[] = []): LogCheck {
  const given = known.flatMap((secret) => (secret !== undefined && secret.length >= MIN_SECRET_LENGTH ? [secret] : []))
  const found = new Set<string>()
  return {
    write(line) {
      const what = findSecret(line, given)
      if (what !== undefined) found.add(`${what} is in this line of the log: ${line.trim()}`)
      // The client may have seen nothing but a stream that broke off.
      if (line.includes('"ContractViolation"')) found.add(`an answer broke the contract: ${line.trim()}`)
    },
    expectNoSecrets() {
      if (found.size > 0) throw new Error([...found].slice(0, 5).join('\n'))
    },
  }
}

function findSecret(line: string, given: string[]): string | undefined {
  const [what] = Object.entries(SECRETS).find(([, form]) => form.test(line)) ?? []
  return what ?? (given.some((secret) => line.includes(secret)) ? 'a secret of the configuration' : undefined)
}

/** Returns `check`, combined with standard output for lines of `level` and above. */
export const andPrint = (check: LogCheck, level: string | undefined): DestinationStream =>
  level === undefined || level === 'silent'
    ? check
    : pino.multistream([
        { level: 'debug', stream: check },
        { level: level as pino.Level, stream: pino.destination(1) },
      ])
