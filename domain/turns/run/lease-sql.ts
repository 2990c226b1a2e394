const HAS_GAP = `processes.seen_at < clock_timestamp() - interval '1.5 seconds'`

/**
 * Notes that the process with the number $1 lives at the place $2, under the name $3. It stands apart, so that the thread that renews the
 * lease of a busy process loads little.
 */
export const RENEW_LEASE = `INSERT INTO processes (number, place, name, seen_at) VALUES ($1::bigint, $2, $3, clock_timestamp())
  ON CONFLICT (number) DO UPDATE SET seen_at = excluded.seen_at, taken_until = NULL,
    held_since = CASE WHEN ${HAS_GAP} THEN clock_timestamp() ELSE processes.held_since END,
    lapsed_at = CASE WHEN ${HAS_GAP} THEN processes.seen_at ELSE processes.lapsed_at END`
