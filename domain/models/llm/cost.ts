import type { TokenUsage } from '../../../contract/kit/common.ts'
import type { Prices, Profile } from './profiles/schema.ts'

/** Decimals of a token's price: a millionth of a price with six decimals. */
const DECIMALS = 12

/**
 * Returns the cost of one model call in USD as an exact decimal, such as '0.00125'. Null when the price is unknown.
 * `input_tokens` include the tokens read from and written to the cache. An unknown cache price equals the input price.
 */
export function costOf(profile: Profile | undefined, usage: TokenUsage): string | null {
  if (profile?.cost === undefined) return null
  const read = toCount(usage.cache_read_tokens)
  const write = toCount(usage.cache_creation_tokens)
  const cached = read + write
  const input = toCount(usage.input_tokens)
  // Some providers count cached tokens apart from the input. A call costs at least its cached tokens.
  const fresh = input > cached ? input - cached : 0n
  const prices = pricesFor(profile.cost, fresh + cached)
  const picodollars =
    fresh * perToken(prices.input) +
    read * perToken(prices.cache_read ?? prices.input) +
    write * perToken(prices.cache_write ?? prices.input) +
    toCount(usage.output_tokens) * perToken(prices.output)
  return toDecimal({ digits: picodollars, scale: DECIMALS })
}

/** The most that a call's input and one token of its output can cost, in USD as exact decimals. */
export type MostCost = { inputUsd: string; outputUsd: string }

/** Returns the most that a call with an input of this length can cost. Null when the price is unknown. */
export function mostCostOf(profile: Profile | undefined, inputTokens: number): MostCost | null {
  if (profile?.cost === undefined) return null
  const prices = pricesFor(profile.cost, toCount(inputTokens))
  const perInput = Math.max(prices.input, prices.cache_read ?? 0, prices.cache_write ?? 0)
  const inDollars = (digits: bigint) => toDecimal({ digits, scale: DECIMALS })
  return {
    inputUsd: inDollars(toCount(inputTokens) * perToken(perInput)),
    outputUsd: inDollars(perToken(prices.output)),
  }
}

/** Adds two costs exactly. Null if either is unknown. */
export function addCosts(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return null
  const [left, right] = [parseDecimal(a), parseDecimal(b)]
  const scale = Math.max(left.scale, right.scale)
  return toDecimal({ digits: rescale(left, scale) + rescale(right, scale), scale })
}

/** Finds the prices for an input of this length: the highest tier below it applies to the whole call. */
function pricesFor(cost: NonNullable<Profile['cost']>, inputTokens: bigint): Prices {
  const tiers = (cost.tiers ?? []).filter((tier) => inputTokens > BigInt(tier.above_input_tokens))
  return tiers.reduce<{ above_input_tokens: number } & Prices>(
    (highest, tier) => (tier.above_input_tokens > highest.above_input_tokens ? tier : highest),
    { ...cost, above_input_tokens: 0 },
  )
}

/** Converts USD per million tokens to picodollars per token. Prices have at most six decimals, so this is exact. */
function perToken(price: number): bigint {
  return BigInt(Math.round(price * 1_000_000))
}

/** Converts tokens to a count, 0 if they are missing or invalid. */
function toCount(tokens: number | null | undefined): bigint {
  const count = Math.trunc(tokens ?? 0)
  return Number.isSafeInteger(count) && count > 0 ? BigInt(count) : 0n
}

/** The number `digits` / 10^`scale`. */
type Decimal = { digits: bigint; scale: number }

function parseDecimal(text: string): Decimal {
  const [, whole = '', fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (whole === '') throw new Error(`A cost is a decimal such as 0.00125, not ${text}.`)
  return { digits: BigInt(whole + fraction), scale: fraction.length }
}

function rescale({ digits, scale }: Decimal, newScale: number): bigint {
  return digits * 10n ** BigInt(newScale - scale)
}

function toDecimal({ digits, scale }: Decimal): string {
  const padded = digits.toString().padStart(scale + 1, '0')
  const whole = padded.slice(0, padded.length - scale)
  const fraction = padded.slice(padded.length - scale).replace(/0+$/, '')
  return fraction === '' ? whole : `${whole}.${fraction}`
}
