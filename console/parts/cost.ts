/** Smallest amount that is shown with its digits. */
const LEAST = 0.0001

/** Returns an amount of USD. Small amounts keep their digits, and an unknown price is never taken for nothing. */
export function costOf(usd: string | null | undefined): string {
  if (usd === null || usd === undefined) return 'unknown'
  const amount = Number(usd)
  if (amount === 0) return '$0'
  if (amount < LEAST) return `< $${LEAST}`
  const digits = amount < 1 ? 4 : 2
  return `$${amount.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}
