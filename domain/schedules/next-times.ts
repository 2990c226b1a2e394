import type { Schedule } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'

/**
 * Returns the next time of each schedule, by id: from the record, or from Temporal where those of the record have
 * passed. Null for one that is disabled, or when Temporal does not answer in time. Never rejects.
 */
export async function readNextTimes(_deps: Deps, _rows: Schedule[]): Promise<Map<string, Date | null>> {
  throw new Error('to be written')
}
