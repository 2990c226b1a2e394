import { createHash, createHmac } from 'node:crypto'
import type { Deps } from '../deps.ts'

/** Hashes a token as the database stores it. The token itself is stored nowhere. */
export const hashToken = (token: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(createHash('sha256').update(token).digest())

/**
 * Derives a token from a random seed. The seed of a repeatable request is stored while the request may be repeated; the
 * token itself never is. `of` differs for each kind of token.
 */
export const deriveToken = ({ auth }: Deps, prefix: string, of: string): string =>
  `${prefix}_${createHmac('sha256', auth.apiKeySecret).update(of).digest('hex')}`
