import { Prisma } from '../../../prisma/generated/client.ts'

/** SQL for whether the turn `t` is its session's next: none before it is unfinished. */
export const IS_NEXT = Prisma.sql`NOT EXISTS (
  SELECT FROM turns earlier
  WHERE earlier.session_id = t.session_id AND earlier.finished_at IS NULL
    AND earlier.input_sequence < t.input_sequence
)`
