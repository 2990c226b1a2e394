import { setTimeout as sleep } from 'node:timers/promises'
import type { CDPSession, Page } from 'playwright-core'
import { goal, print } from './report.ts'
import { median } from './statistics.ts'

/** BENCH_MINUTES=30 is the stream that the console must stand. */
const MINUTES = Number(process.env.BENCH_MINUTES ?? 2)
const DELTAS_OF_TURN = 200
const WORDS = 'The quick **brown** fox jumps over the `lazy` dog.\n\n'.split(' ')
const SAMPLE_MS = 1000
const MAX_GROWTH = 1.5
const DELTA = 'output.message.delta'

export type Event = { id: string; type: string; sequence: number; session_id: string; data: { accumulated?: string } }
/** Stream whose events are sent one after the other, at a steady pace. */
export type Stream = { begin(events: Iterable<Event>): void; readonly sent: number }

/** Repeats the events of a real turn as turns of their own, each with a long text in many deltas. */
export function* repeatTurn(recorded: Event[]): Generator<Event> {
  const turn = /"turn_([0-9a-f]{32})"/.exec(JSON.stringify(recorded))?.[1]
  const short = recorded.find(({ type }) => type === DELTA)?.data.accumulated
  const [first] = recorded
  if (turn === undefined || short === undefined || first === undefined) throw new Error('the record has no answer')
  const long = JSON.stringify(Array.from({ length: DELTAS_OF_TURN }, (_, index) => wordAt(index)).join(''))
  const lengthened = recorded.map(
    (event): Event => JSON.parse(JSON.stringify(event).replaceAll(JSON.stringify(short), long)),
  )
  let { sequence } = first
  for (let number = 1; ; number++) {
    for (const event of lengthened.flatMap((event) => (event.type === DELTA ? deltasOf(event) : [event]))) {
      const own: Event = JSON.parse(JSON.stringify(event).replaceAll(turn, advance(turn, number)))
      sequence++
      yield { ...own, id: `event_${advance(first.id.replace('event_', ''), sequence)}`, sequence }
    }
  }
}

const wordAt = (index: number): string => `${WORDS[index % WORDS.length]} `

function deltasOf(event: Event): Event[] {
  let accumulated = ''
  return Array.from({ length: DELTAS_OF_TURN }, (_, index) => {
    accumulated += wordAt(index)
    return { ...event, data: { ...event.data, delta: wordAt(index), accumulated } }
  })
}

/** Returns a later id, for each number another one. */
const advance = (digits: string, by: number): string =>
  (BigInt(`0x${digits}`) + BigInt(by) * 2n ** 32n).toString(16).padStart(32, '0')

/** Streams turns into an open session, and compares the cost of layout at the beginning with the cost at the end. */
export async function benchStream(page: Page, stream: Stream, recorded: Event[]): Promise<boolean> {
  const devtools = await page.context().newCDPSession(page)
  // The time of the page's thread, whatever else the machine does.
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  stream.begin(repeatTurn(recorded))
  await page.getByText('The quick').first().waitFor()
  print('ms for 1,000 events    layout   scripts')
  const costs: number[] = []
  for (let tenth = 1; tenth <= 10; tenth++) {
    const { layoutMs, scriptMs } = await costFor(devtools, stream, MINUTES * 6000)
    costs.push(layoutMs)
    print(
      `${`${stream.sent} events`.padStart(19)}${layoutMs.toFixed(0).padStart(10)}${scriptMs.toFixed(0).padStart(10)}`,
    )
  }
  const growth = (costs.at(-1) ?? Number.NaN) / (costs[0] ?? Number.NaN)
  return goal(
    growth <= MAX_GROWTH,
    `layout in the last tenth of ${MINUTES} minutes, of its cost in the first: at most ${MAX_GROWTH}: ${growth.toFixed(2)}`,
  )
}

type Cost = { layoutMs: number; scriptMs: number }

/** Returns the cost of 1,000 events in the median second of a time. */
async function costFor(devtools: CDPSession, stream: Stream, ms: number): Promise<Cost> {
  const until = performance.now() + ms
  const seconds: Cost[] = []
  for (let before = await measure(devtools, stream); performance.now() < until; ) {
    await sleep(SAMPLE_MS)
    const now = await measure(devtools, stream)
    const thousands = (now.events - before.events) / 1000
    const [layoutMs, scriptMs] = [now.layoutMs - before.layoutMs, now.scriptMs - before.scriptMs]
    seconds.push({ layoutMs: layoutMs / thousands, scriptMs: scriptMs / thousands })
    before = now
  }
  return {
    layoutMs: median(seconds.map((second) => second.layoutMs)),
    scriptMs: median(seconds.map((second) => second.scriptMs)),
  }
}

/** Reads how long a page has computed styles and layout, and has run scripts. */
async function measure(devtools: CDPSession, stream: Stream): Promise<Cost & { events: number }> {
  const { metrics } = await devtools.send('Performance.getMetrics')
  const msOf = (wanted: string) => 1000 * (metrics.find(({ name }) => name === wanted)?.value ?? 0)
  return {
    events: stream.sent,
    layoutMs: msOf('LayoutDuration') + msOf('RecalcStyleDuration'),
    scriptMs: msOf('ScriptDuration'),
  }
}
