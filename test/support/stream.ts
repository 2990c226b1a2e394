import { request } from 'node:http'
import { addressOf, headersOf, type Json, PATIENCE_MS, type Target } from './http.ts'

/** One frame of an event stream. `comment` is the text of a line that begins with a colon. */
export type Frame = { event?: string; id?: string; data?: Json; retry?: number; comment?: string }

export type OpenStream = {
  status: number
  headers: Record<string, string | string[] | undefined>
  frames: Frame[]
  /** Returns the parsed events, which are the frames with an id. */
  events(): Json[]
  /** Resolves with the first matching frame, received already or later. Each frame is checked once. */
  until(fits: (frame: Frame) => boolean, timeoutMs?: number): Promise<Frame>
  /** Resolves when the stream has ended: `whole` if the server ended it, `torn` if the connection broke. */
  ended: Promise<'whole' | 'torn'>
  /** Stops reading from the connection until `resume`. */
  pause(): void
  resume(): void
  close(): void
}

export type StreamOptions = {
  method?: string
  headers?: Record<string, string>
  body?: unknown
  signal?: AbortSignal
  /** Called with each frame as it comes. */
  onFrame?(frame: Frame): void
}

/** Opens a stream and collects its frames. The parser follows the standard and shares no code with the service. */
export function openStream(target: Target, path: string, options: StreamOptions = {}): Promise<OpenStream> {
  return new Promise((resolve, reject) => {
    const headers = {
      Accept: 'text/event-stream',
      ...(options.body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headersOf(target),
      ...options.headers,
    }
    const sent = request(
      addressOf(target) + path,
      { method: options.method ?? 'GET', headers, agent: false, ...(options.signal && { signal: options.signal }) },
      (answer) => {
        const frames: Frame[] = []
        const waiting = new Set<() => void>()
        let pieces = ['']
        answer.setEncoding('utf8')
        answer.on('data', (chunk: string) => {
          // A large frame comes in hundreds of chunks and is searched for its end only once.
          const hasEnd = `${pieces.at(-1)?.at(-1)}${chunk}`.includes('\n\n')
          pieces.push(chunk)
          if (!hasEnd) return
          const blocks = pieces.join('').split('\n\n')
          pieces = [blocks.pop() ?? '']
          const fresh = blocks.map(parseFrame)
          frames.push(...fresh)
          if (options.onFrame) fresh.forEach(options.onFrame)
          for (const look of waiting) look()
        })
        const ended = new Promise<'whole' | 'torn'>((done) => {
          answer.on('close', () => done(answer.complete ? 'whole' : 'torn'))
          answer.on('error', () => done('torn'))
        })
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          frames,
          events: () => frames.filter((frame) => frame.id !== undefined).map((frame) => frame.data),
          until: (fits, timeoutMs = PATIENCE_MS) => waitForFrame(frames, waiting, fits, timeoutMs),
          ended,
          pause: () => void answer.pause(),
          resume: () => void answer.resume(),
          close: () => answer.destroy(),
        })
      },
    )
    sent.on('error', reject)
    sent.end(options.body === undefined ? undefined : JSON.stringify(options.body))
  })
}

function parseFrame(block: string): Frame {
  const frame: Frame = {}
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    const [field, value] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
    if (field === '') frame.comment = value
    if (field === 'event') frame.event = value
    if (field === 'id') frame.id = value
    if (field === 'data') frame.data = JSON.parse(value)
    if (field === 'retry') frame.retry = Number(value)
  }
  return frame
}

function waitForFrame(
  frames: Frame[],
  waiting: Set<() => void>,
  fits: (frame: Frame) => boolean,
  timeoutMs: number,
): Promise<Frame> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      clearTimeout(timer)
      waiting.delete(look)
      finish()
    }
    let looked = 0
    const look = () => {
      while (looked < frames.length) {
        const frame = frames[looked++] as Frame
        if (fits(frame)) return settle(() => resolve(frame))
      }
    }
    const seen = () => frames.map((frame) => frame.event ?? frame.comment).join(', ')
    const timer = setTimeout(
      () => settle(() => reject(new Error(`no such frame within ${timeoutMs} ms; there were: ${seen()}`))),
      timeoutMs,
    )
    waiting.add(look)
    look()
  })
}
