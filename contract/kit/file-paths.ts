import { z } from 'zod'

/** Limits on a path: bytes of UTF-8, and segments. change_session_files repeats them. */
export const MAX_PATH_BYTES = 1024
export const MAX_SEGMENTS = 64

const encoder = new TextEncoder()

/** Returns a path in normal form: absolute, without empty segments or a trailing slash. */
export const normalizePath = (path: string): string => `/${path.split('/').filter(Boolean).join('/')}`

const NO_CONTROL = 'must not contain control characters'

/** Returns the problem of a normalized path, or undefined. */
export const pathProblem = (path: string): string | undefined =>
  /\p{Cc}/u.test(path) ? NO_CONTROL : storedPathProblem(path)

/** Returns why no file can have a normalized path. Earlier releases allowed control characters except NUL. */
function storedPathProblem(path: string): string | undefined {
  const segments = path.split('/').slice(1)
  if (path.includes('\0')) return NO_CONTROL
  if (segments.some((segment) => segment === '.' || segment === '..')) return 'must not have a segment . or ..'
  if (encoder.encode(path).length > MAX_PATH_BYTES) return `must be at most ${MAX_PATH_BYTES} bytes of UTF-8`
  if (segments.length > MAX_SEGMENTS) return `must have at most ${MAX_SEGMENTS} segments`
  return undefined
}

/** Returns why a normalized path must not be written, or undefined. */
export function writtenPathProblem(path: string): string | undefined {
  if (/\/_/.test(path)) return 'must not have a segment that begins with _'
  return pathProblem(path)
}

/** Returns the codec of a path in a request. A text too long to be a path is not even normalized. */
const pathWith = (problemOf: (path: string) => string | undefined) =>
  z
    .codec(
      z
        .string()
        .max(16 * MAX_PATH_BYTES)
        .meta({ maxLength: MAX_PATH_BYTES }),
      z.string(),
      { decode: normalizePath, encode: (path) => path },
    )
    .superRefine((path, context) => {
      const message = problemOf(path)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })

/** Path of a file or directory, normalized; the root is `/`. */
export const FilePath = pathWith(pathProblem)
/** Path below the root, normalized. */
export const EntryPath = pathWith((path) => rootProblem(path) ?? pathProblem(path))
/** Path below the root, for a deletion, normalized. */
export const DeletedFilePath = pathWith((path) => rootProblem(path) ?? storedPathProblem(path))
/** Path for a write, normalized. */
export const WrittenFilePath = pathWith((path) => rootProblem(path) ?? writtenPathProblem(path))

const rootProblem = (path: string): string | undefined => (path === '/' ? 'must not be the root directory' : undefined)
