import { addressOf } from './address.ts'
import { portOf } from './outgoing-url.ts'

const PATTERN = /^(\*\.)?(\[[0-9a-f:.]+\]|[^:[\]/?#@\\*\s]+)(?::(\d{1,5}))?$/i
const MAX_PORT = 65_535

/**
 * Returns a pattern of hosts in the form that `matchesHost` takes: `api.example.com`, or `*.example.com` for all names
 * below it, with a port or without. Undefined for any other text.
 */
export function parseHostPattern(text: string): string | undefined {
  const [, wildcard = '', host = '', port] = PATTERN.exec(text) ?? []
  const url = host === '' ? null : URL.parse(`https://${host}`)
  if (url === null || (port !== undefined && (Number(port) < 1 || Number(port) > MAX_PORT))) return undefined
  // A wildcard for a whole top-level domain would be a mistake, and addresses have no names below them.
  if (wildcard !== '' && (addressOf(url) !== undefined || !url.hostname.includes('.'))) return undefined
  return `${wildcard}${url.hostname}${port === undefined ? '' : `:${Number(port)}`}`
}

/**
 * Returns whether a pattern of `parseHostPattern` covers a URL. Without a port it covers https on the usual port; with
 * one it covers that port, also without encryption.
 */
export function matchesHost(pattern: string, url: URL): boolean {
  const [, wildcard, host = '', port] = PATTERN.exec(pattern) ?? []
  const isHost = wildcard === undefined ? url.hostname === host : url.hostname.endsWith(`.${host}`)
  return isHost && (port === undefined ? url.protocol === 'https:' && url.port === '' : portOf(url) === Number(port))
}
