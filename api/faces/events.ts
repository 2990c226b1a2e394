import type { EventType, WireEvent } from '../../contract/events.ts'
import type { EventLine } from '../../domain/events/read/read.ts'

/** Event of the log, with the data of its type. */
export type TurnEvent = { [T in EventType]: WireEvent<T> }[EventType]

/** Types that no face translates. The largest events are among them. */
export const UNUSED_TYPES = ['llm.generation', 'session.started', 'session.activated'] as const satisfies EventType[]

/** Frame of a face's stream: its data, in one line. */
export type Frame = { line: string }

/** Translation of one turn's events, in their order, into the frames of a protocol. */
export type Translation = {
  /** Frames that come before the first event. */
  begin(): Frame[]
  event(event: TurnEvent): Frame[]
  /** Frames with which the stream ends while the turn waits for its client. */
  pause(): Frame[]
  /** Whether the client has been sent everything: the turn has ended, or waits for it. */
  readonly isOver: boolean
}

/** Yields the frames of a turn until it ends or waits for its client. Returns why the events ended. */
export async function* translate(
  events: AsyncGenerator<EventLine[], string>,
  translation: Translation,
): AsyncGenerator<Frame[], string> {
  try {
    yield translation.begin()
    while (!translation.isOver) {
      const next = await events.next()
      if (next.done) return next.value
      const frames: Frame[] = []
      for (const { line } of next.value) if (!translation.isOver) frames.push(...translation.event(JSON.parse(line)))
      if (frames.length > 0) yield frames
    }
    return 'end'
  } finally {
    await events.return('end')
  }
}
