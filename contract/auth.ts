import { z } from 'zod'
import { DateTime, listOf, nameUpTo, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { ApiKeyId, wireId, wireUuid } from './kit/ids.ts'

export const AuthMode = z.enum(['none', 'admin', 'full'])
export type AuthMode = z.infer<typeof AuthMode>

/**
 * Names of the identity providers. idpa uses OpenID Connect; idpb uses OAuth 2 with an API that identifies the user.
 */
export const IDENTITY_PROVIDERS = ['idpa', 'idpb'] as const
export type IdentityProviderName = (typeof IDENTITY_PROVIDERS)[number]

const AuthConfig = z
  .object({
    mode: AuthMode,
    password_auth_enabled: z.boolean(),
    oauth_providers: z.array(z.string()),
    signup_enabled: z.boolean(),
  })
  .meta({ id: 'AuthConfigResponse' })
export type AuthConfig = z.infer<typeof AuthConfig>

const MAX_EMAIL_BYTES = 254
const MIN_PASSWORD_CHARACTERS = 8
/** Maximum length of a password; longer ones would only keep the server busy. */
const MAX_PASSWORD_BYTES = 1024
const MAX_NAME_BYTES = 2048
const MAX_API_KEY_NAME_BYTES = 255
const MAX_REFRESH_TOKEN_BYTES = 4096
const MAX_SCOPES = 50
const MAX_API_KEY_DAYS = 3650

export const Password = textUpTo(MAX_PASSWORD_BYTES)

const LoginRequest = z.object({ email: textUpTo(MAX_EMAIL_BYTES), password: Password }).meta({ id: 'LoginRequest' })
export type LoginRequest = z.infer<typeof LoginRequest>

const RegisterRequest = z
  .object({
    email: z
      .string()
      .trim()
      .pipe(z.email({ error: 'must be an e-mail address' }))
      .pipe(textUpTo(MAX_EMAIL_BYTES)),
    password: Password.refine((password) => [...password].length >= MIN_PASSWORD_CHARACTERS, {
      error: `must have at least ${MIN_PASSWORD_CHARACTERS} characters`,
    }),
    name: z.string().trim().min(1, { error: 'must not be empty' }).pipe(textUpTo(MAX_NAME_BYTES)),
  })
  .meta({ id: 'RegisterRequest' })
export type RegisterRequest = z.infer<typeof RegisterRequest>

const RefreshRequest = z
  .object({
    refresh_token: textUpTo(MAX_REFRESH_TOKEN_BYTES).nullish().meta({
      description: 'Default: the cookie refresh_token.',
    }),
  })
  .meta({ id: 'RefreshRequest' })

export const TokenResponse = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int().meta({ description: 'Seconds until the access token expires.' }),
    refresh_token: z.string().nullish().meta({
      description: 'For one POST /v1/auth/refresh, which returns the next token.',
    }),
  })
  .meta({ id: 'TokenResponse' })
export type TokenResponse = z.infer<typeof TokenResponse>

export const Role = z.enum(['owner', 'admin', 'member'])
export type Role = z.infer<typeof Role>

const CurrentUser = z
  .object({
    id: wireUuid,
    email: z.string(),
    name: z.string(),
    roles: z.array(z.string()).meta({ description: 'In the current organization.' }),
    avatar_url: z.string().nullish(),
    organizations: z.array(z.object({ public_id: wireId('org'), name: z.string(), role: z.string() })),
  })
  .meta({ id: 'CurrentUser' })
export type CurrentUser = z.infer<typeof CurrentUser>

const CreateApiKeyRequest = z
  .object({
    name: nameUpTo(MAX_API_KEY_NAME_BYTES),
    scopes: z
      .array(textUpTo(100))
      .max(MAX_SCOPES, { error: `must have at most ${MAX_SCOPES} scopes` })
      .nullish()
      .meta({
        description:
          'Permissions of the key: read (every GET) and write (everything), or either for one tag of this document, ' +
          'as in sessions:read. Default: all permissions of its user.',
      }),
    expires_in_days: z
      .int()
      .min(1)
      .max(MAX_API_KEY_DAYS, { error: `must be at most ${MAX_API_KEY_DAYS}` })
      .nullish()
      .meta({ description: 'Default: the key does not expire.' }),
  })
  .meta({ id: 'CreateApiKeyRequest' })
export type CreateApiKeyRequest = z.infer<typeof CreateApiKeyRequest>

const ApiKey = z
  .object({
    id: wireUuid,
    name: z.string(),
    key_prefix: z.string().meta({ description: 'The first characters of the key, to recognise it.' }),
    scopes: z.array(z.string()),
    expires_at: DateTime.nullish(),
    last_used_at: DateTime.nullish().meta({ description: 'To the minute.' }),
    created_at: DateTime,
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.infer<typeof ApiKey>

const CreatedApiKey = ApiKey.extend({
  key: z.string().meta({ description: 'The key: ask_ and 64 hex digits. It is shown only once, here.' }),
}).meta({ id: 'CreatedApiKey' })
export type CreatedApiKey = z.infer<typeof CreatedApiKey>

const provider = z.string().meta({ enum: [...IDENTITY_PROVIDERS] })

/** Limit of bodies for signing in. Most of these operations are public. */
const AUTH_BODY_BYTES = 16 * 1024

export const authEndpoints = group(
  { tag: 'auth', path: '/v1/auth', access: 'public' },
  {
    config: {
      operationId: 'getAuthConfig',
      method: 'GET',
      at: '/config',
      summary: 'Lists the ways to sign in',
      responses: { 200: AuthConfig },
    },
    login: {
      operationId: 'login',
      method: 'POST',
      at: '/login',
      summary: 'Signs in with e-mail and password',
      description: 'Also sets the tokens as cookies. At most 10 times a minute from one address.',
      body: LoginRequest,
      bodyLimitBytes: AUTH_BODY_BYTES,
      responses: { 200: TokenResponse },
      errors: [401, 429],
    },
    register: {
      operationId: 'register',
      method: 'POST',
      at: '/register',
      summary: 'Creates a user, signs them in and makes them a member of the default organization',
      description:
        'At most 5 times a minute from one address. Takes no Idempotency-Key: an e-mail address registers only once, so if the ' +
        'answer is lost, log in.',
      body: RegisterRequest,
      bodyLimitBytes: AUTH_BODY_BYTES,
      responses: { 201: TokenResponse },
      errors: [403, 409, 429],
    },
    refresh: {
      operationId: 'refreshTokens',
      method: 'POST',
      at: '/refresh',
      summary: 'Exchanges a refresh token for new tokens',
      description:
        'A refresh token works once. A second use means that the token was copied or its answer was lost, and ends the whole ' +
        'login. At most 30 times a minute from one address.',
      body: RefreshRequest,
      bodyLimitBytes: AUTH_BODY_BYTES,
      bodyOptional: true,
      responses: { 200: TokenResponse },
      errors: [401, 403, 429],
    },
    logout: {
      operationId: 'logout',
      method: 'POST',
      at: '/logout',
      access: 'login',
      summary: 'Ends the login: its refresh token and its access tokens stop working at once',
      description:
        'Takes any access or refresh token of the login, even used or expired, from the header or the cookies.',
      responses: { 204: null },
    },
    me: {
      operationId: 'getCurrentUser',
      method: 'GET',
      at: '/me',
      access: 'user',
      summary: 'Returns the caller',
      responses: { 200: CurrentUser },
    },
    startOauth: {
      operationId: 'startOauth',
      method: 'GET',
      at: '/oauth/{provider}',
      summary: "Redirects a browser to an identity provider's sign-in",
      params: z.object({ provider }),
      query: z.object({
        return_to: textUpTo(2048).optional().meta({
          description:
            "Where the browser is sent in the end: a path on the service's own address. Default: /, which leads to the console",
        }),
      }),
      responses: { 302: null },
      errors: [429, 502],
    },
    finishOauth: {
      operationId: 'finishOauth',
      method: 'GET',
      at: '/callback/{provider}',
      summary: 'Receives the browser from an identity provider, sets the cookies and redirects',
      params: z.object({ provider }),
      query: z.object({
        code: textUpTo(4096).optional(),
        state: textUpTo(4096).optional(),
        error: textUpTo(4096).optional(),
      }),
      responses: { 302: null },
      errors: [401, 403, 409, 429, 502],
    },
    listApiKeys: {
      operationId: 'listApiKeys',
      method: 'GET',
      at: '/api-keys',
      access: 'member',
      summary: "Lists the caller's API keys in the current organization",
      responses: { 200: listOf(ApiKey) },
    },
    createApiKey: {
      operationId: 'createApiKey',
      method: 'POST',
      at: '/api-keys',
      access: 'member',
      login: true,
      summary: 'Creates an API key of the caller for the current organization; only this answer has the key',
      body: CreateApiKeyRequest,
      bodyLimitBytes: AUTH_BODY_BYTES,
      creates: true,
      responses: { 201: CreatedApiKey },
    },
    revokeApiKey: {
      operationId: 'revokeApiKey',
      method: 'DELETE',
      at: '/api-keys/{key_id}',
      access: 'member',
      login: true,
      summary: 'Revokes an API key at once',
      params: z.object({ key_id: ApiKeyId }),
      responses: { 204: null },
    },
  },
)
