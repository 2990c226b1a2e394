import type { Turn } from 'agent-session-client'
import { costOf } from '../../parts/cost.ts'
import { durationOf } from '../../parts/duration.ts'
import { RUN_ERRORS } from '../../parts/run-errors.ts'
import { runMsOf } from '../../parts/run-time.ts'
import type { Run } from './use-run.ts'

export type Fact = { name: string; a: string; b: string /** '' if both are equal. */; difference: string }

type Measure = { name: string; read(turn: Turn): number | undefined; show(value: number): string }

const whole = (value: number): string => value.toLocaleString()
const tokens = (name: string, read: (usage: Turn['usage']) => number | null | undefined): Measure => ({
  name,
  read: ({ usage }) => read(usage) ?? 0,
  show: whole,
})

const MEASURES: Measure[] = [
  { name: 'Time', read: runMsOf, show: durationOf },
  { name: 'Cost', read: ({ cost_usd }) => (cost_usd ? Number(cost_usd) : undefined), show: (usd) => costOf(`${usd}`) },
  tokens('Tokens in', ({ input_tokens }) => input_tokens),
  tokens('Tokens out', ({ output_tokens }) => output_tokens),
  tokens('Tokens from cache', ({ cache_read_tokens }) => cache_read_tokens),
  { name: 'Model calls', read: ({ iterations }) => iterations, show: whole },
]

/** Returns the facts of two runs, each with how the second differs from the first. */
export function factsOf([a, b]: readonly [Run, Run], nameOf: (agentId: string) => string): Fact[] {
  const texts: [string, (run: Run) => string][] = [
    ['Agent', ({ turn }) => (turn?.agent_id ? nameOf(turn.agent_id) : '')],
    ['Version', ({ turn }) => (turn?.agent_version ? `v${turn.agent_version}` : '')],
    ['Model', ({ told }) => told.models.join(', ')],
    ['Error', ({ turn }) => (turn?.error_code ? RUN_ERRORS[turn.error_code] : '')],
  ]
  const named = texts.map(([name, read]) => factOf(name, read(a), read(b)))
  const measured = MEASURES.map(({ name, read, show }) => {
    const [left, right] = [a.turn && read(a.turn), b.turn && read(b.turn)]
    const text = (value: number | undefined, { turn }: Run) =>
      value === undefined ? (turn === undefined || name !== 'Cost' ? '' : 'unknown') : show(value)
    const difference = left === undefined || right === undefined || left === right ? '' : changeOf(left, right, show)
    return { name, a: text(left, a), b: text(right, b), difference }
  })
  const calls = factOf('Tools called', whole(a.told.calls.length), whole(b.told.calls.length))
  return [...named, ...measured, calls].filter((fact) => fact.a !== '' || fact.b !== '')
}

const factOf = (name: string, a: string, b: string): Fact => ({ name, a, b, difference: a === b ? '' : 'differs' })

/** Returns a change in words: `+0.4 s (+12%)`. */
function changeOf(from: number, to: number, show: (value: number) => string): string {
  const sign = to > from ? '+' : '−'
  const share = from === 0 ? '' : ` (${sign}${Math.round((Math.abs(to - from) / from) * 100)}%)`
  return `${sign}${show(Math.abs(to - from))}${share}`
}
