import { z } from 'zod'

/** Limits on a path: bytes of UTF-8, and segments. change_session_files has them, too. */
export const MAX_PATH_BYTES = 1024
export const MAX_SEGMENTS = 64

const encoder = new TextEncoder()

/** Returns a path in its one form: absolute, without empty segments and without a slash at its end. */
export const normalizePath = (path: string): string => `/${path.split('/').filter(Boolean).join('/')}`

const NO_CONTROL = 'must not contain control characters'

/** Says what is wrong with a normalized path; undefined when nothing is. */
export const pathProblem = (path: string): string | undefined =>
  /\p{Cc}/u.test(path) ? NO_CONTROL : storedPathProblem(path)

/** Says why no file can have a normalized path: earlier releases took control characters, except NUL. */
function storedPathProblem(path: string): string | undefined {
  const segments = path.split('/').slice(1)
  if (path.includes('\0')) return NO_CONTROL
  if (segments.some((segment) => segment === '.' || segment === '..')) return 'must not have a segment . or ..'
  if (encoder.encode(path).length > MAX_PATH_BYTES) return `must be at most ${MAX_PATH_BYTES} bytes of UTF-8`
  if (segments.length > MAX_SEGMENTS) return `must have at most ${MAX_SEGMENTS} segments`
  return undefined
}

/** Says what is wrong with a normalized path that is to be written; undefined when nothing is. */
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
/** Path below the root that is to be deleted, normalized. */
export const DeletedFilePath = pathWith((path) => rootProblem(path) ?? storedPathProblem(path))
/** Path that is to be written, normalized. */
export const WrittenFilePath = pathWith((path) => rootProblem(path) ?? writtenPathProblem(path))

const rootProblem = (path: string): string | undefined => (path === '/' ? 'must not be the root directory' : undefined)
