import type { Context, Middleware } from 'koa'
import type { FaceName } from '../../contract/faces.ts'
import type { Deps } from '../../domain/deps.ts'
import type { ErrorForm } from '../http/errors.ts'
import type { Handle } from '../http/handle.ts'
import type { SseStreams } from '../http/sse.ts'
import { aiSdkRoutes } from './ai-sdk/routes.ts'
import { openaiError } from './openai/error.ts'
import { openaiRoutes } from './openai/routes.ts'

type Face = {
  /** Paths of the face, after the prefix of the API. */
  paths: RegExp
  errorForm: ErrorForm
  register: (handle: Handle, deps: Deps, streams: SseStreams) => void
}

const faces: Partial<Record<FaceName, Face>> = {
  'ai-sdk': {
    paths: /\/v1\/faces\/ai-sdk\//,
    // The client shows the body as it is.
    errorForm: (_status, { error }) => error,
    register: aiSdkRoutes,
  },
  openai: {
    paths: /\/v1\/(models|chat\/completions)(\/|$)/,
    errorForm: openaiError,
    register: openaiRoutes,
  },
}

/** Registers the routes of the faces that are served. */
export function addFaces(names: readonly FaceName[], handle: Handle, deps: Deps, streams: SseStreams): void {
  for (const name of names) faces[name]?.register(handle, deps, streams)
}

/** Has the errors of a face's paths answered in the form that its clients read. */
export const useErrorForms =
  (names: readonly FaceName[]): Middleware =>
  (ctx: Context, next) => {
    const name = names.find((candidate) => faces[candidate]?.paths.test(ctx.path))
    ctx.state.errorForm = name && faces[name]?.errorForm
    return next()
  }
