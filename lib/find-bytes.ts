import { setImmediate as nextRound } from 'node:timers/promises'

/** Bytes searched before other work gets its turn; some 5 ms. */
const SEARCHED_AT_ONCE = 1024 * 1024

/**
 * Returns the position of the first occurrence, -1 for none, and how many there are, overlapping ones included. By
 * Knuth, Morris and Pratt, because `indexOf` takes a minute for 10 MiB of a and 32 KB that differ in the middle.
 */
export async function findBytes(bytes: Uint8Array, sought: Uint8Array): Promise<{ first: number; count: number }> {
  const borders = bordersOf(sought)
  const found = { first: -1, count: 0 }
  let matched = 0
  for (let at = 0; at < bytes.length; at++) {
    if (at > 0 && at % SEARCHED_AT_ONCE === 0) await nextRound()
    while (matched > 0 && bytes[at] !== sought[matched]) matched = borders[matched - 1] ?? 0
    if (bytes[at] === sought[matched]) matched++
    if (matched < sought.length) continue
    if (found.count === 0) found.first = at + 1 - sought.length
    found.count++
    matched = borders[matched - 1] ?? 0
  }
  return found
}

/** Returns for each prefix the length of its longest proper prefix that is also its suffix. */
function bordersOf(sought: Uint8Array): Int32Array {
  const borders = new Int32Array(sought.length)
  for (let at = 1, matched = 0; at < sought.length; at++) {
    while (matched > 0 && sought[at] !== sought[matched]) matched = borders[matched - 1] ?? 0
    if (sought[at] === sought[matched]) matched++
    borders[at] = matched
  }
  return borders
}
