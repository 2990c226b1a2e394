import { RE2JS, RE2JSSyntaxException } from 're2js'
import type { GrepMatch, GrepResult } from '../../../../contract/files.ts'
import { serveJobs } from '../../../../lib/threads/worker.ts'
import { isText } from '../content.ts'
import { GlobError, globToRegex } from './glob.ts'
import type { GrepAnswer, GrepJob, Patterns } from './job.ts'
import { findLines, takeRoom } from './lines.ts'

/** Entry point of a grep thread. It matches untrusted patterns only with RE2, which does not backtrack. */

/** Remembers the last result, because a search's pieces follow one another. */
function rememberLast(compile: (pattern: string) => RE2JS): (pattern: string) => RE2JS {
  let last: { pattern: string; compiled: RE2JS } | undefined
  return (pattern) => {
    if (last?.pattern !== pattern) last = { pattern, compiled: compile(pattern) }
    return last.compiled
  }
}

const compilePattern = rememberLast((pattern) => RE2JS.compile(pattern))
const compileGlob = rememberLast((glob) => RE2JS.compile(globToRegex(glob)))

function choose({ pattern, pathPattern }: Patterns, paths: string[]): GrepAnswer {
  const problem =
    problemOf('pattern', () => compilePattern(pattern)) ??
    (pathPattern === undefined ? undefined : problemOf('path_pattern', () => compileGlob(pathPattern)))
  if (problem !== undefined) return { is: 'problem', problem }
  if (pathPattern === undefined) return { is: 'chosen', paths }
  const glob = compileGlob(pathPattern)
  return { is: 'chosen', paths: paths.filter((path) => glob.test(path)) }
}

function problemOf(field: string, compile: () => unknown): string | undefined {
  try {
    compile()
    return undefined
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException || error instanceof GlobError)) throw error
    return `${field}: ${error.message.replace(/^error parsing regexp: /, '')}`
  }
}

function scan({ pattern, files, room }: GrepJob & { do: 'scan' }): GrepAnswer {
  const regex = compilePattern(pattern)
  const results: GrepResult[] = []
  for (const { path, bytes } of files) {
    if (!isText(bytes)) continue
    const matches: GrepMatch[] = []
    for (const match of findLines(path, decode(bytes), (line) => regex.test(line))) {
      if (!takeRoom(room, match)) return { is: 'scanned', results, room, isFull: true }
      if (matches.push(match) === 1) results.push({ path, matches })
    }
  }
  return { is: 'scanned', results, room, isFull: false }
}

const decode = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, length).toString('utf8')

serveJobs<GrepJob, GrepAnswer>((job) => [job.do === 'choose' ? choose(job.patterns, job.paths) : scan(job)])
