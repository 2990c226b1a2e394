import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ConfigError } from './config-error.ts'

/** Reads a file that a variable names. Throws ConfigError when it cannot be read or is empty. */
export function readNamedFile(file: string, variable: string): string {
  try {
    const text = readFileSync(file, 'utf8')
    if (text.trim() !== '') return text
  } catch (error) {
    throw new ConfigError(`${variable}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  throw new ConfigError(`${variable}: ${file} is empty`)
}

/** Reads the certificates of authorities (PEM) from a file that a variable names. */
export function readAuthorities(file: string, variable: string): string {
  const text = readNamedFile(file, variable)
  try {
    new X509Certificate(text)
  } catch {
    throw new ConfigError(`${variable}: ${file} holds no certificate in PEM`)
  }
  return text
}

const UNTRUSTED =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_UNTRUSTED|CERT_SIGNATURE_FAILURE|INVALID_CA)$/

/**
 * Tells in a clause why a TLS connection could not be made; undefined for all other errors. `howToTrust` says where an
 * authority is named.
 */
export function tlsFailure(error: unknown, howToTrust = ''): string | undefined {
  const { code, message, host, cert } = (error ?? {}) as {
    code?: unknown
    message?: string
    host?: string
    cert?: Names
  }
  if (typeof code !== 'string') return undefined
  if (UNTRUSTED.test(code)) return `no trusted authority signed the server's certificate (${code}): ${howToTrust}`
  if (code === 'CERT_HAS_EXPIRED') return "the server's certificate has expired"
  if (code === 'CERT_NOT_YET_VALID') return "the server's certificate is not valid yet"
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the server's certificate is for ${cert?.subjectaltname ?? 'other hosts'}, not for ${host}`
  return /^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|EPROTO$)/.test(code) ? `no TLS connection: ${message}` : undefined
}

type Names = { subjectaltname?: string }
