import type { GrepRequest } from '../../../../contract/files.ts'
import type { Claim } from '../../../../lib/fair-queue.ts'
import { invalid, tooMany } from '../../../kit/errors.ts'
import type { SessionScope } from '../../../kit/session-scope.ts'
import type { Deps } from '../../deps.ts'
import { statFile } from '../read.ts'
import type { Found } from './found.ts'
import type { GrepAnswer, GrepJob, Room } from './job.ts'
import { readPieces } from './pieces.ts'
import { prefetch } from './prefetch.ts'

/** Maximum number of matches of a search, and of their bytes as JSON. */
const MAX_MATCHES = 10_000
const MAX_FOUND_BYTES = 4 * 1024 * 1024
/** CPU time limit of a job. Scanning a piece takes 20 to 100 ms with all but the worst patterns. */
const JOB_LIMIT_MS = 3000
/** CPU time limit of a whole search, and its time limit on a busy machine. */
const LIMIT_CPU_MS = 30_000
const LIMIT_MS = 60_000

const slow = (field: string) => invalid(`${field}: takes too long to match; make it simpler, or path_pattern narrower`)
const busy = () => tooMany('Too many searches are running; try again later', 2)
const refuse = (): never => {
  throw busy()
}

/**
 * Finds the lines of a session's text files that match. Reading, matching and waiting end when `signal` aborts. Throws
 * `not_found`, `invalid` for a malformed pattern or one with too much CPU time, `too_many` when the machine is too slow
 * for it, and the signal's reason.
 */
export async function grepFiles(
  deps: Deps,
  scope: SessionScope,
  request: GrepRequest,
  signal: AbortSignal,
): Promise<Found> {
  await statFile(deps, scope, '/')
  const claim = { owner: await deps.owners.ownerOf(scope.organizationId) }
  const searchForAWhile = async () => {
    const limit = AbortSignal.timeout(LIMIT_MS)
    try {
      return await search(deps, scope, request, claim, AbortSignal.any([signal, limit]))
    } catch (error) {
      throw limit.aborted && error === limit.reason ? busy() : error
    }
  }
  return deps.grepSlots.run(claim, searchForAWhile, refuse, signal)
}

async function search(
  deps: Deps,
  scope: SessionScope,
  request: GrepRequest,
  claim: Claim,
  signal: AbortSignal,
): Promise<Found> {
  const { pattern } = request
  const pathPattern = request.path_pattern || undefined
  let leftMs = LIMIT_CPU_MS
  const run = async (field: string, job: GrepJob) => {
    const { answer, cpuMs } = await runJob(deps, claim, field, job, signal)
    leftMs -= cpuMs
    if (leftMs < 0) throw slow(field)
    return answer
  }
  const choose = async (paths: string[]) => {
    const field = pathPattern === undefined ? 'pattern' : 'path_pattern'
    const answer = await run(field, { do: 'choose', patterns: { pattern, pathPattern }, paths })
    if (answer.is === 'problem') throw invalid(answer.problem)
    return answer.is === 'chosen' ? answer.paths : []
  }
  const found: Found = { results: [], isTruncated: false }
  let room: Room = { matches: MAX_MATCHES, bytes: MAX_FOUND_BYTES }
  for await (const files of prefetch(readPieces(deps, scope, choose))) {
    const contents = files.map(({ path, bytes }) => ({ path, bytes }))
    const answer = await run('pattern', { do: 'scan', pattern, files: contents, room })
    if (answer.is !== 'scanned') throw new Error(`a grep thread has answered ${answer.is} to a scan`)
    found.results.push(...answer.results)
    room = answer.room
    found.isTruncated = answer.isFull
    if (answer.isFull) break
  }
  return found
}

async function runJob(
  { threads }: Deps,
  claim: Claim,
  field: string,
  job: GrepJob,
  signal: AbortSignal,
): Promise<{ answer: GrepAnswer; cpuMs: number }> {
  const {
    answers: [answer],
    cpuMs,
    end,
  } = await threads.greps.run(job, JOB_LIMIT_MS, signal, claim)
  if (answer !== undefined) return { answer, cpuMs }
  if (end === 'busy') throw busy()
  if (end === 'late') throw slow(field)
  throw invalid(`${field}: takes too much memory to match; make it simpler`)
}
