/** Call that some program is to answer. */
export type QueuedCall = { session_id: string; turn_id: string; id: string }

export type CallQueue<C extends QueuedCall> = {
  /** Adds a call unless it is known or the queue is full. */
  add(call: C): void
  /** Forgets the calls of a turn, and aborts the running ones. */
  drop(turnId: string): void
  /** Forgets all calls, and resolves when no work is left. */
  close(): Promise<void>
}

type QueueOptions<C> = {
  /** Number of calls that are worked on at once. */
  concurrency: number
  /** Works on a call. Returns the time in ms after which to try again; undefined when the call is over. */
  work(call: C, signal: AbortSignal): Promise<number | undefined>
  /** Called when there is room again after calls were left out. */
  onRoom(): void
  onFailure(error: unknown): void
}

/** `again`: the call as it was added once more while its ended work goes on. */
type Entry<C> = {
  call: C
  ended: AbortController
  timer?: ReturnType<typeof setTimeout>
  isReady: boolean
  again?: C
}

/** Maximum number of known calls. Others are left out until there is room. */
const MAX_CALLS = 1000

/** Creates a queue of calls that works on some at once, and again on calls that somebody else had. */
export function createCallQueue<C extends QueuedCall>(options: QueueOptions<C>): CallQueue<C> {
  const { concurrency, work, onRoom, onFailure } = options
  const known = new Map<string, Entry<C>>()
  const running = new Set<Promise<void>>()
  let isClosed = false
  let isShort = false

  const run = async (key: string, entry: Entry<C>): Promise<void> => {
    const againMs = await work(entry.call, entry.ended.signal).catch((error: unknown) => onFailure(error))
    if (typeof againMs === 'number' && !entry.ended.signal.aborted) {
      entry.timer = setTimeout(() => {
        delete entry.timer
        entry.isReady = true
        fill()
      }, againMs)
      return
    }
    known.delete(key)
    if (entry.again !== undefined) add(entry.again)
    makeRoom()
  }
  const makeRoom = () => {
    if (!isShort || isClosed || known.size > MAX_CALLS / 2) return
    isShort = false
    onRoom()
  }
  const fill = () => {
    for (const [key, entry] of known) {
      if (isClosed || running.size >= concurrency) return
      if (!entry.isReady) continue
      entry.isReady = false
      const done = run(key, entry).finally(() => {
        running.delete(done)
        fill()
      })
      running.add(done)
    }
  }
  const drop = (key: string, entry: Entry<C>) => {
    const isRunning = !entry.isReady && entry.timer === undefined
    clearTimeout(entry.timer)
    entry.ended.abort(new Error('The call is no longer pending'))
    if (isRunning) return
    known.delete(key)
    makeRoom()
  }
  const add = (call: C) => {
    const key = `${call.session_id} ${call.id}`
    const before = known.get(key)
    // Its function has not noticed yet that the call was over.
    if (before?.ended.signal.aborted) before.again = call
    if (isClosed || before !== undefined) return
    if (known.size >= MAX_CALLS) {
      isShort = true
      return
    }
    known.set(key, { call, ended: new AbortController(), isReady: true })
    fill()
  }
  return {
    add,
    drop: (turnId) => {
      for (const [key, entry] of known) if (entry.call.turn_id === turnId) drop(key, entry)
    },
    close: async () => {
      isClosed = true
      for (const [key, entry] of known) drop(key, entry)
      await Promise.all(running)
    },
  }
}
