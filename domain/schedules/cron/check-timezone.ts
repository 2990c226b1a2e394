/** Throws `invalid` for a name that is not an IANA time zone. */
export function checkTimezone(_timezone: string): void {
  throw new Error('to be written')
}
