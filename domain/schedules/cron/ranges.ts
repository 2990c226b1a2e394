/** Every `step`th number from `start` to `end`. */
export type Range = { start: number; end: number; step: number }

/** Groups ascending numbers into few ranges. */
export function rangesOf(numbers: readonly number[]): Range[] {
  const ranges: Range[] = []
  for (const value of numbers) {
    const last = ranges.at(-1)
    if (last !== undefined && last.start === last.end) Object.assign(last, { end: value, step: value - last.start })
    else if (last !== undefined && value - last.end === last.step) last.end = value
    else ranges.push({ start: value, end: value, step: 1 })
  }
  return ranges
}

export const numbersOf = (ranges: Range[]): number[] =>
  ranges.flatMap(({ start, end, step }) =>
    Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => start + index * step),
  )
