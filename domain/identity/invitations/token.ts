import type { CreatedInvitation, Invitation } from '../../../contract/invitations.ts'
import { conflict } from '../../kit/errors.ts'
import { deriveToken, hashToken } from '../auth/derived-token.ts'
import type { Deps } from '../deps.ts'

export const INVITATION_TOKEN = /^inv_[0-9a-f]{64}$/

/** Derives a token from its seed. It never equals an API key. */
export const tokenOf = (deps: Deps, seed: string): string => deriveToken(deps, 'inv', `invitation ${seed}`)

/** A created invitation, with the seed of its token and the token's hash in hex, which verifies the derived token. */
export type MadeInvitation = { invitation: Invitation; seed: string; hash: string }

/** Presents an invitation to the request that created it. Throws `conflict` when the secret has changed since. */
export function presentCreatedInvitation(deps: Deps, { invitation, seed, hash }: MadeInvitation): CreatedInvitation {
  const token = tokenOf(deps, seed)
  if (Buffer.from(hashToken(token)).toString('hex') === hash) {
    // Browsers do not send the fragment, so no server's log has it.
    return { ...invitation, token, url: `${deps.auth.baseUrl}/join#${token}` }
  }
  throw conflict('This request made an invitation that cannot be shown again; withdraw it and make another')
}
