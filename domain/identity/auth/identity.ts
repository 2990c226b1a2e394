import { z } from 'zod'
import { forbidden } from '../../kit/errors.ts'
import { notVerified } from './callback.ts'
import type { Identity } from './identity-provider.ts'

const MAX_EMAIL_BYTES = 254
const MAX_NAME_BYTES = 2048
const MAX_URL_CHARACTERS = 2048
/** OpenID Connect's limits for a subject: ASCII, at most 255 characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/

const Email = z.email().max(MAX_EMAIL_BYTES)

/** Unchecked claims from a provider; `names` are tried in order. */
export type Claims = { issuer: string; subject: unknown; verifiedEmail: unknown; names: unknown[]; avatarUrl: unknown }

/**
 * Validates a provider's claims. Throws `unauthenticated` for a subject that does not identify one user, and
 * `forbidden` without a verified e-mail address.
 */
export function toIdentity({ issuer, subject, verifiedEmail, names, avatarUrl }: Claims): Identity {
  const email = Email.safeParse(verifiedEmail)
  if (!email.success) throw forbidden('The identity provider does not know a verified e-mail address of yours')
  const [localPart = ''] = email.data.split('@')
  const name = names.map(toName).find((text) => text !== '') ?? localPart
  return { subject: `${issuer} ${toSubject(subject)}`, email: email.data, name, avatarUrl: toAvatarUrl(avatarUrl) }
}

export const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1).toLowerCase()

function toSubject(subject: unknown): string {
  // A larger number has been rounded, possibly to another user's id.
  const text = typeof subject === 'string' || Number.isSafeInteger(subject) ? String(subject) : ''
  if (!SUBJECT.test(text)) throw notVerified()
  return text
}

/** Removes what Postgres or a terminal cannot handle and limits the length. Returns '' when there is no usable name. */
function toName(name: unknown): string {
  if (typeof name !== 'string') return ''
  const text = name
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
  // With `stream`, a character that the limit cuts in two is left out.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, MAX_NAME_BYTES), { stream: true })
}

function toAvatarUrl(url: unknown): string | null {
  if (typeof url !== 'string' || url.length > MAX_URL_CHARACTERS || !URL.canParse(url)) return null
  const { protocol, href } = new URL(url)
  return /^https?:$/.test(protocol) && href.length <= MAX_URL_CHARACTERS ? href : null
}
