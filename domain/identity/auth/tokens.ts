import { hkdfSync } from 'node:crypto'
import { EncryptJWT, type JWTVerifyOptions, jwtDecrypt, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import type { TokenResponse } from '../../../contract/auth.ts'

/** A login, identified by the row of its refresh token. `generation` counts the renewals. */
export type Login = { userId: string; loginId: string; generation: number }

export type Tokens = {
  issue(login: Login): Promise<TokenResponse>
  /** Reads an access token; undefined unless this service issued it and it has not expired. */
  readAccess(token: string): Promise<{ userId: string; loginId: string; expiresAt: Date } | undefined>
  /**
   * Reads a refresh token; undefined unless this service issued it and it has not expired. It may have been used
   * already.
   */
  readRefresh(token: string): Promise<Login | undefined>
  /** Returns the login of a token of either kind, also of an expired one; undefined unless this service signed it. */
  readAny(token: string): Promise<Login | undefined>
  /** Encrypts data that a browser keeps for the service but must not read. */
  seal(data: Record<string, string>, lifetimeSeconds: number): Promise<string>
  unseal(sealed: string): Promise<Record<string, unknown> | undefined>
  readonly accessSeconds: number
  readonly refreshSeconds: number
}

export type TokenOptions = { secret: Uint8Array; accessSeconds: number; refreshSeconds: number }

const ISSUER = 'agent-session-service'
const ALGORITHM = 'HS256'
/** Token types, which are in the header, so that neither kind passes for the other (RFC 8725, section 3.11). */
const ACCESS = 'at+jwt'
const REFRESH = 'refresh+jwt'

/** Required claims; another holder of the secret may have signed tokens of a different form. */
const Claims = z.object({ sub: z.uuid(), sid: z.uuid(), gen: z.int().min(0), exp: z.number() })

/** Creates the functions that issue and read tokens. A different secret invalidates all tokens. */
export function createTokens({ secret, accessSeconds, refreshSeconds }: TokenOptions): Tokens {
  const { sign, read } = createSigning(secret)
  return {
    accessSeconds,
    refreshSeconds,
    issue: async (login) => ({
      access_token: await sign(ACCESS, login, accessSeconds),
      token_type: 'Bearer',
      expires_in: accessSeconds,
      refresh_token: await sign(REFRESH, login, refreshSeconds),
    }),
    readAccess: (token) => read(token, { typ: ACCESS }),
    readRefresh: (token) => read(token, { typ: REFRESH }),
    readAny: (token) => read(token, { currentDate: new Date(0) }),
    ...createSealing(deriveKey(secret, 'seal')),
  }
}

function createSigning(secret: Uint8Array) {
  const sign = (type: string, { userId, loginId, generation }: Login, seconds: number): Promise<string> =>
    new SignJWT({ sid: loginId, gen: generation })
      .setProtectedHeader({ alg: ALGORITHM, typ: type })
      .setIssuer(ISSUER)
      .setSubject(userId)
      .setIssuedAt()
      .setExpirationTime(`${seconds} s`)
      .sign(secret)
  const read = async (
    token: string,
    expected: JWTVerifyOptions,
  ): Promise<(Login & { expiresAt: Date }) | undefined> => {
    try {
      const { payload } = await jwtVerify(token, secret, {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        requiredClaims: ['exp'],
        ...expected,
      })
      const { sub, sid, gen, exp } = Claims.parse(payload)
      return { userId: sub, loginId: sid, generation: gen, expiresAt: new Date(exp * 1000) }
    } catch {
      return undefined
    }
  }
  return { sign, read }
}

const createSealing = (key: Uint8Array): Pick<Tokens, 'seal' | 'unseal'> => ({
  seal: (data, lifetimeSeconds) =>
    new EncryptJWT(data)
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .setExpirationTime(`${lifetimeSeconds} s`)
      .encrypt(key),
  unseal: async (sealed) => {
    try {
      const { payload } = await jwtDecrypt(sealed, key, {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
        requiredClaims: ['exp'],
      })
      return payload
    } catch {
      return undefined
    }
  },
})

/** Derives a key for one purpose; it reveals neither the secret nor the key of another purpose. */
export const deriveKey = (secret: Uint8Array, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', secret, '', `agent-session-service ${purpose}`, 32))
