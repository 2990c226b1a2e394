import type { Random } from '../../support/random.ts'

export const MAX_INPUT_BYTES = 256 * 1024
const MAX_CHANGES = 6
/** Lengths and counts at which parsers differ. */
const NUMBERS = [0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff]
const DIGITS = ['0', '-1', '1e309', '00', '9'.repeat(20), '9'.repeat(400), '4294967296', '9007199254740993', '0.1']

export type Material = { random: Random; pool: readonly Buffer[]; words: readonly Buffer[] }
type Draw = { below(end: number): number; pick<T>(list: readonly T[]): T }
type Mutation = (input: Buffer, draw: Draw, material: Material) => Buffer

/** Returns the input with bytes `from` to `to` replaced. */
const replaced = (input: Buffer, from: number, to: number, by: Uint8Array): Buffer =>
  Buffer.concat([input.subarray(0, from), by, input.subarray(to)])

function rangeOf(input: Buffer, { below }: Draw): [from: number, to: number] {
  const from = below(input.length + 1)
  // Short ranges are more often whole fields.
  const most = below(2) === 0 ? 8 : input.length - from
  return [from, Math.min(input.length, from + 1 + below(most + 1))]
}

function writeNumber(input: Buffer, { below, pick }: Draw): Buffer {
  const changed = Buffer.from(input)
  const size = pick([1, 2, 3, 4].filter((bytes) => bytes <= input.length))
  if (size === undefined) return changed
  const at = below(input.length - size + 1)
  const limit = 2 ** (8 * size)
  const isLittle = below(2) === 0
  const old = isLittle ? input.readUIntLE(at, size) : input.readUIntBE(at, size)
  const value = (below(2) === 0 ? pick(NUMBERS) : old + below(33) - 16 + limit) % limit
  if (isLittle) changed.writeUIntLE(value, at, size)
  else changed.writeUIntBE(value, at, size)
  return changed
}

const MUTATIONS: Mutation[] = [
  (input, { below }) => {
    const changed = Buffer.from(input)
    const at = below(input.length)
    if (at < input.length) changed[at] = (changed[at] ?? 0) ^ (1 << below(8))
    return changed
  },
  (input, { below }) => {
    const at = below(input.length)
    return replaced(input, at, at + 1, Buffer.of(below(256)))
  },
  writeNumber,
  writeNumber,
  (input, draw) => replaced(input, ...rangeOf(input, draw), Buffer.of()),
  (input, { below }) => input.subarray(0, below(input.length + 1)),
  (input, draw) => {
    const [from, to] = rangeOf(input, draw)
    const part = input.subarray(from, to)
    const times = draw.below(8) === 0 ? 1 + draw.below(1000) : 1 + draw.below(3)
    const copies = Array.from({ length: Math.min(times, Math.ceil(MAX_INPUT_BYTES / (part.length + 1))) }, () => part)
    return replaced(input, to, to, Buffer.concat(copies))
  },
  (input, { below, pick }, { words }) => {
    if (words.length === 0) return input
    const word = pick(words)
    const at = below(input.length + 1)
    return replaced(input, at, at + pick([0, word.length]), word)
  },
  (input, draw, { pool }) => {
    const other = draw.pick(pool)
    const [from, to] = rangeOf(other, draw)
    return replaced(input, ...rangeOf(input, draw), other.subarray(from, to))
  },
  (input, { below, pick }) => {
    const text = input.toString('latin1')
    const numbers = [...text.matchAll(/\d+/g)]
    const number = numbers[below(numbers.length)]
    if (number === undefined) return input
    return replaced(input, number.index, number.index + number[0].length, Buffer.from(pick(DIGITS)))
  },
]

/** Changes an input in a few places. */
export function mutate(input: Buffer, material: Material): Buffer {
  const below = (end: number) => Math.floor(material.random() * end)
  // The lists are not empty.
  const draw: Draw = { below, pick: <T>(list: readonly T[]) => list[below(list.length)] as T }
  let changed = input
  for (let left = 1 + below(MAX_CHANGES); left > 0; left--) changed = draw.pick(MUTATIONS)(changed, draw, material)
  return changed.subarray(0, MAX_INPUT_BYTES)
}
