import { RE2JS } from 're2js'
import { SchemaProblem } from './flatten-schema.ts'

/** One unit is about a microsecond at worst. */
const BUDGET = 500_000
const CHARACTERS_PER_UNIT = 16
/** A pattern's size times the length of the text, in steps of about 0.1 µs at worst. */
const PATTERN_STEPS_PER_UNIT = 10
const MAX_PATTERN_SIZE = 5000

export class BudgetSpent extends Error {
  override name = 'BudgetSpent'
}

/** What one schema may cost: its patterns when it is compiled, each check of arguments when it runs. */
export type WorkBudget = {
  /** Before each check. `units` is for a check that may stop early and is worth less than all. */
  refill(units?: number): void
  /** Throws BudgetSpent. */
  spend(work: number, data: unknown): void
  /** A pattern on RE2, which needs linear time for any; throws SchemaProblem for one that RE2 does not know. */
  compilePattern(pattern: string): { test(text: string): boolean; toString(): string }
}

export function createWorkBudget(): WorkBudget {
  let left = BUDGET
  let patternSize = 0
  const take = (units: number): void => {
    left -= units
    if (left < 0) throw new BudgetSpent()
  }
  return {
    refill: (units = BUDGET) => {
      left = units
    },
    spend: (work, data) => take(work + Math.ceil(sizeOf(data) / CHARACTERS_PER_UNIT)),
    compilePattern: (pattern) => {
      const source = translate(pattern)
      patternSize += estimateSize(source)
      if (patternSize > MAX_PATTERN_SIZE) throw new SchemaProblem('its patterns are too large when written out')
      const compiled = compile(source, pattern)
      const size = compiled.programSize()
      return {
        test: (text) => {
          take(Math.ceil((size * (text.length + 1)) / PATTERN_STEPS_PER_UNIT))
          return compiled.test(text)
        },
        // Ajv takes patterns of one text for one pattern.
        toString: () => pattern,
      }
    },
  }
}

function sizeOf(data: unknown): number {
  if (typeof data === 'string' || Array.isArray(data)) return data.length
  return typeof data === 'object' && data !== null ? Object.keys(data).length : 0
}

/** From JavaScript's syntax, which JSON Schema has, to RE2's. RE2's own \Q…\E is no JavaScript and would hide what is in it. */
function translate(pattern: string): string {
  if (/\\Q/.test(pattern)) throw unknownPattern(pattern, 'invalid escape sequence: \\Q')
  try {
    return RE2JS.translateRegExp(pattern)
  } catch (error) {
    throw unknownPattern(pattern, error)
  }
}

function compile(source: string, pattern: string): RE2JS {
  try {
    return RE2JS.compile(source)
  } catch (error) {
    throw unknownPattern(pattern, error)
  }
}

function unknownPattern(pattern: string, reason: unknown): SchemaProblem {
  const text = reason instanceof Error ? reason.message : String(reason)
  return new SchemaProblem(
    `the pattern ${JSON.stringify(pattern.slice(0, 200))} cannot be used (RE2 syntax, no look-around or back-references): ${text.slice(0, 200)}`,
  )
}

const TOKEN = /\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:(,)(\d*))?\}|[\s\S]/g

/** About how many instructions a pattern becomes: `x{1000}` is a thousand. Known before RE2 writes them all out. */
function estimateSize(pattern: string): number {
  const outer: number[] = []
  let total = 0
  let last = 0
  for (const [token, minimum, , maximum] of pattern.matchAll(TOKEN)) {
    if (minimum !== undefined) {
      const times = Math.max(Number(minimum), Number(maximum ?? 0), 1)
      total += last * (times - 1)
      last *= times
    } else if (token === '(') {
      outer.push(total)
      total = 0
    } else if (token === ')') {
      last = total + 2
      total = (outer.pop() ?? 0) + last
    } else {
      last = 1
      total += 1
    }
  }
  return outer.reduce((sum, size) => sum + size, total)
}
