import type { Schedule } from '../../../prisma/generated/client.ts'
import { type EncryptedColumn, placeOf } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'

/** Column of the header values that schedules send. */
export const SCHEDULE_HEADERS: EncryptedColumn = { table: 'schedules', keys: ['id'], column: 'target_headers' }

/** Returns the column of a schedule's headers. Null without headers. */
export const encryptHeaders = (
  { secrets }: Deps,
  scheduleId: string,
  headers: Record<string, string>,
): Schedule['targetHeaders'] =>
  Object.keys(headers).length === 0
    ? null
    : secrets.encrypt(JSON.stringify(headers), placeOf(SCHEDULE_HEADERS, [scheduleId]))

/** Decrypts a schedule's headers. Throws `UnreadableSecret`. */
export const readHeaders = (
  { secrets }: Deps,
  { id, targetHeaders }: Pick<Schedule, 'id' | 'targetHeaders'>,
): Record<string, string> =>
  targetHeaders === null ? {} : JSON.parse(secrets.decrypt(targetHeaders, placeOf(SCHEDULE_HEADERS, [id])))
