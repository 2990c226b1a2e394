import { type AnyEvent, follow } from '../../../client/src/follow.ts'
import type { Patience } from '../../../client/src/retry.ts'

const HEAD = { headers: { 'Content-Type': 'text/event-stream' } }
const event = (sequence: number): AnyEvent => ({ id: `event_${sequence}`, type: 'x', sequence })
const frame = (sequence: number): string => {
  const data = JSON.stringify(event(sequence))
  return `event: x\nid: event_${sequence}\ndata: ${data}\nretry: 100\n\n`
}
const farewell = (reason: string, retryMs = 100): string =>
  `event: disconnecting\ndata: ${JSON.stringify({ reason, retry_ms: retryMs })}\n\n`
const refusal = (status: number, headers: Record<string, string> = {}, more: object = {}) =>
  new Response(JSON.stringify({ error: 'No.', ...more }), { status, headers })
/** Answer for a session that is not there, in whatever words. */
const noSession = () => refusal(404, {}, { code: 'not_found', field: 'session_id' })

/** One connection: its text and how it ends, or the answer in place of a stream. */
type Connection = { text: string; end: 'closes' | 'breaks' | 'hangs' } | Response

/** Plays connections, and hangs after the last. `opened` has the cursor of each and the time since the one before. */
function play(connections: Connection[]) {
  const opened: { after: string | undefined; waitedMs: number }[] = []
  const signals: AbortSignal[] = []
  let endedAt = Date.now()
  const open = async (after: string | undefined, signal: AbortSignal): Promise<Response> => {
    opened.push({ after, waitedMs: Date.now() - endedAt })
    signals.push(signal)
    const connection = connections.shift() ?? { text: '', end: 'hangs' }
    endedAt = Date.now()
    if (connection instanceof Response) return connection
    return new Response(bodyOf(connection.text, connection.end, signal), HEAD)
  }
  return { open, opened, signals }
}

function bodyOf(text: string, end: 'closes' | 'breaks' | 'hangs', signal: AbortSignal): ReadableStream<Uint8Array> {
  let isSent = text === ''
  return new ReadableStream({
    start: (controller) => signal.addEventListener('abort', () => controller.error(signal.reason)),
    pull: (controller) => {
      if (!isSent) {
        isSent = true
        controller.enqueue(new TextEncoder().encode(text))
      } else if (end === 'closes') controller.close()
      else if (end === 'breaks') controller.error(new TypeError('terminated'))
    },
  })
}

/** Follows until so many events have come. Returns their sequences, or the error. */
async function read(connections: Connection[], count: number, options: { after?: string; patience?: Patience } = {}) {
  const played = play(connections)
  const sequences: unknown[] = []
  let error: unknown
  try {
    for await (const { sequence } of follow({ ...options, open: played.open })) {
      if (sequences.push(sequence) === count) break
    }
  } catch (thrown) {
    error = thrown
  }
  return { ...played, sequences, error, cursors: played.opened.map(({ after }) => after) }
}

describe('following a stream', () => {
  const cut = frame(2).slice(0, 40)

  it.each<[string, Connection[], (string | undefined)[]]>([
    [
      'closes',
      [
        { text: frame(1), end: 'closes' },
        { text: frame(2), end: 'hangs' },
      ],
      [undefined, 'event_1'],
    ],
    [
      'breaks in the middle of an event',
      [
        { text: frame(1) + cut, end: 'breaks' },
        { text: frame(2), end: 'hangs' },
      ],
      [undefined, 'event_1'],
    ],
    [
      'closes in the middle of an event',
      [
        { text: frame(1) + cut, end: 'closes' },
        { text: frame(2), end: 'hangs' },
      ],
      [undefined, 'event_1'],
    ],
    [
      'repeats events',
      [
        { text: frame(1) + frame(1), end: 'breaks' },
        { text: frame(1) + frame(2), end: 'hangs' },
      ],
      [undefined, 'event_1'],
    ],
    [
      'is cycled',
      [
        { text: farewell('connection_cycle'), end: 'hangs' },
        { text: frame(1) + frame(2), end: 'hangs' },
      ],
      [undefined, undefined],
    ],
    [
      'is refused for a while',
      [refusal(503), refusal(500), { text: frame(1) + frame(2), end: 'hangs' }],
      [undefined, undefined, undefined],
    ],
  ])('goes on where it was when the connection %s', async (_how, connections, cursors) => {
    const result = await read(connections, 2)
    expect([result.sequences, result.cursors]).toEqual([[1, 2], cursors])
    expect(result.signals.map(({ aborted }) => aborted)).toEqual(cursors.map(() => true))
  })

  it.each([401, 403, 404, 400])('gives up at a first answer of %d', async (status) => {
    expect(await read([refusal(status)], 1)).toMatchObject({ error: { name: 'ApiError', status, message: 'No.' } })
  })

  it.each<[string, Connection[]]>([
    ['says so', [{ text: frame(1) + farewell('session_deleted'), end: 'hangs' }]],
    ['answers 404 later', [{ text: frame(1), end: 'breaks' }, noSession()]],
    ['answers 204', [{ text: frame(1), end: 'closes' }, new Response(null, { status: 204 })]],
  ])('ends when there is nothing more and the service %s', async (_how, connections) => {
    expect(await read(connections, 9)).toMatchObject({ sequences: [1], error: undefined })
  })

  it('waits as long as the service asks, and no longer', async () => {
    const asked = [refusal(429, { 'Retry-After': '1' }), { text: frame(1), end: 'hangs' } as const]
    const [, second] = (await read(asked, 1)).opened
    expect(second?.waitedMs).toBeGreaterThanOrEqual(990)
    const cycled: Connection[] = [
      { text: farewell('connection_cycle', 400), end: 'closes' },
      { text: frame(1), end: 'hangs' },
    ]
    expect((await read(cycled, 1)).opened[1]?.waitedMs).toBeGreaterThanOrEqual(390)
  })

  it('backs off from failures, and not any more after an event', async () => {
    const broken: Connection = { text: '', end: 'breaks' }
    const good: Connection[] = [
      { text: frame(1), end: 'breaks' },
      { text: frame(2), end: 'hangs' },
    ]
    const { opened } = await read([broken, broken, broken, ...good], 2)
    const waits = opened.map(({ waitedMs }) => waitedMs)
    expect(waits[3]).toBeGreaterThanOrEqual(490)
    expect(waits[4]).toBeLessThan(490)
  })

  it('gives up after so many attempts if it is told to', async () => {
    expect(await read([refusal(503), refusal(503)], 1, { patience: { attempts: 2, ms: 1000 } })).toMatchObject({
      error: { status: 503 },
    })
  })

  it('gives up after so long, as a computer sleeps between two attempts', async () => {
    const { error, opened } = await read([refusal(503), refusal(503)], 1, { patience: { attempts: 9, ms: 100 } })
    expect([error, opened.length]).toEqual([expect.objectContaining({ status: 503 }), 1])
    const later = await read([{ text: frame(1), end: 'breaks' }, refusal(503), { text: frame(2), end: 'hangs' }], 2, {
      patience: { attempts: 9, ms: 100 },
    })
    expect(later.sequences).toEqual([1, 2])
  })

  it.each<[string, Connection[], object]>([
    [
      'another thing is missing',
      [{ text: frame(1), end: 'breaks' }, refusal(404, {}, { code: 'not_found' })],
      { status: 404 },
    ],
    ['the answer is a page', [new Response('<html>', { headers: { 'Content-Type': 'text/html' } })], { status: 200 }],
    ['the answer is JSON', [Response.json({}, { status: 201 })], { status: 201 }],
  ])('throws when %s', async (_what, connections, error) => {
    expect((await read(connections, 9)).error).toMatchObject(error)
  })

  it('gives up after so many streams without an event, too, if it is told to', async () => {
    const empty: Connection = { text: farewell('connection_cycle', 1), end: 'closes' }
    const { error, opened } = await read([empty, empty], 1, { patience: { attempts: 2, ms: 1000 } })
    expect([String(error), opened.length]).toEqual(['Error: The service sent no event', 2])
  })

  it('yields nothing after the signal has aborted', async () => {
    const { open } = play([{ text: frame(1) + frame(2) + frame(3), end: 'hangs' }])
    const stop = new AbortController()
    const sequences: unknown[] = []
    for await (const { sequence } of follow({ open, signal: stop.signal })) {
      sequences.push(sequence)
      stop.abort()
    }
    expect(sequences).toEqual([1])
  })

  it('ends quietly when the signal aborts, whatever it waits for', async () => {
    for (const connections of [
      [],
      [{ text: frame(1), end: 'hangs' } as const],
      [refusal(429, { 'Retry-After': '60' })],
    ]) {
      const { open, signals } = play(connections)
      const leave = new AbortController()
      setTimeout(() => leave.abort(), 50)
      for await (const _event of follow({ open, signal: leave.signal }));
      expect(signals.every(({ aborted }) => aborted)).toBe(true)
    }
  })

  it('takes a connection for dead on which nothing comes, but not while nobody reads', async () => {
    const { open, opened, signals } = play([
      { text: frame(1), end: 'hangs' },
      { text: frame(2), end: 'hangs' },
    ])
    const events = follow({ open, silenceMs: 300 })
    await events.next()
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(signals[0]?.aborted).toBe(false)
    expect((await events.next()).value).toMatchObject({ sequence: 2 })
    expect(opened[1]).toMatchObject({ after: 'event_1' })
    await events.return()
  })
})
