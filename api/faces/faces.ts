import type { Context, Middleware } from 'koa'
import type { FaceName } from '../../contract/faces.ts'
import type { Deps } from '../../domain/deps.ts'
import type { ErrorForm } from '../http/errors.ts'
import type { Handle } from '../http/handle.ts'
import { aiSdkRoutes } from './ai-sdk/routes.ts'
import type { FaceOptions } from './face-options.ts'
import { challenge } from './mcp/resource.ts'
import { mcpRoutes } from './mcp/routes.ts'
import { openaiError } from './openai/error.ts'
import { openaiRoutes } from './openai/routes.ts'

type Face = {
  /** Paths of the face, after the prefix of the API. */
  paths: RegExp
  errorForm: ErrorForm
  register: (handle: Handle, deps: Deps, options: FaceOptions) => void
  /** Runs around the requests of the face, before anything is known about them. */
  around?: (deps: Deps) => Middleware
}

const faces: Partial<Record<FaceName, Face>> = {
  'ai-sdk': {
    paths: /^\/v1\/faces\/ai-sdk\//,
    // The client shows the body as it is.
    errorForm: (_status, { error }) => error,
    register: (handle, deps, { streams }) => aiSdkRoutes(handle, deps, streams),
  },
  mcp: {
    paths: /^\/v1\/mcp$/,
    errorForm: (status, { error, code }) => ({
      jsonrpc: '2.0',
      error: { code: status === 400 ? -32600 : -32000, message: error, data: { code } },
      id: null,
    }),
    register: mcpRoutes,
    around: challenge,
  },
  openai: {
    paths: /^\/v1\/(models|chat\/completions)(\/|$)/,
    errorForm: openaiError,
    register: (handle, deps, { streams }) => openaiRoutes(handle, deps, streams),
  },
}

/** Registers the routes of the faces that are served. */
export function addFaces(names: readonly FaceName[], handle: Handle, deps: Deps, options: FaceOptions): void {
  for (const name of names) faces[name]?.register(handle, deps, options)
}

/** Has the errors of a face's paths answered in the form that its clients read. */
export const useErrorForms =
  (names: readonly FaceName[], deps: Deps, apiPrefix: string): Middleware =>
  (ctx: Context, next) => {
    const path = ctx.path.startsWith(apiPrefix) ? ctx.path.slice(apiPrefix.length) : ''
    const name = names.find((candidate) => faces[candidate]?.paths.test(path))
    const face = name && faces[name]
    ctx.state.errorForm = face?.errorForm
    return face?.around === undefined ? next() : face.around(deps)(ctx, next)
  }
