import { newestOfLargest } from './newest-of-largest.ts'

/** Party that a job is for. Jobs without an owner form one queue and may take every slot. */
export type Claim = {
  owner?: string | undefined
  /** Set for a job that goes ahead of jobs that are not urgent. */
  isUrgent?: boolean
}

export type FairQueue = {
  /** Waits for a slot. False when none is free in time. When `signal` aborts, rejects with its reason. */
  enter(claim: Claim, signal?: AbortSignal): Promise<boolean>
  /** Gives a slot back. */
  leave(claim: Claim): void
  /** Runs work in a slot. Returns or throws what `refuse` does when none is free in time. */
  run<T>(claim: Claim, work: () => Promise<T>, refuse?: () => T, signal?: AbortSignal): Promise<T>
}

const refuseRun = (): never => {
  throw new Error('No slot of the queue became free in time.')
}

type Waiting = { isUrgent: boolean; begin(): void; giveUp(): void }

/**
 * Maximum number of jobs that wait, of all owners and of one. When the queue is full, the newest job of the owner with
 * most jobs in it is refused.
 */
const WAITING = { maxWaiting: 500, maxWaitingOfOwner: 100 }

type Limits = Partial<typeof WAITING> & {
  /** Slots that one owner may take: all but one unless given. */
  maxOfOwner?: number
}

/**
 * Limits the jobs that run at once. An owner never has all slots, and waiting owners are served in turn, so that one
 * owner's jobs cannot keep out others'. The jobs of one owner keep their order. A job waits at most `waitMs`, which may
 * be infinite.
 */
export function createFairQueue(maxSlots: number, waitMs: number, limits: Limits = {}): FairQueue {
  const { maxWaiting, maxWaitingOfOwner, maxOfOwner } = { maxOfOwner: Math.max(maxSlots - 1, 1), ...WAITING, ...limits }
  let taken = 0
  const takenBy = new Map<string, number>()
  /** The owner who was served last is the last one. */
  const queues = new Map<string, Set<Waiting>>()

  const mayEnter = (owner: string): boolean =>
    taken < maxSlots && (owner === '' || (takenBy.get(owner) ?? 0) < maxOfOwner)
  const change = (owner: string, by: 1 | -1) => {
    taken += by
    const left = (takenBy.get(owner) ?? 0) + by
    if (left === 0) takenBy.delete(owner)
    else takenBy.set(owner, left)
  }
  /** Makes room for one more job in the queue. False when that one is the job to refuse. */
  const makeRoom = (owner: string): boolean => {
    const own = queues.get(owner)?.size ?? 0
    if (owner !== '' && own >= maxWaitingOfOwner) return false
    const size = [...queues.values()].reduce((sum, queue) => sum + queue.size, 0)
    if (size < maxWaiting) return true
    const newest = newestOfLargest(queues, owner)
    newest?.giveUp()
    return newest !== undefined
  }
  const findNext = (isUrgent: boolean): [owner: string, waiting: Waiting] | undefined => {
    for (const [owner, queue] of queues) {
      if (!mayEnter(owner)) continue
      for (const waiting of queue) if (waiting.isUrgent === isUrgent) return [owner, waiting]
    }
    return undefined
  }
  const beginNext = (): boolean => {
    const next = findNext(true) ?? findNext(false)
    if (next === undefined) return false
    const [owner, waiting] = next
    waiting.begin()
    const queue = queues.get(owner)
    if (queue !== undefined && queues.delete(owner)) queues.set(owner, queue)
    return true
  }

  const fairQueue: FairQueue = {
    enter: async ({ owner = '', isUrgent = false }, signal) => {
      signal?.throwIfAborted()
      if (mayEnter(owner)) {
        change(owner, 1)
        return true
      }
      if (!makeRoom(owner)) return false
      const queue = queues.get(owner) ?? new Set()
      queues.set(owner, queue)
      return waitIn(queue, isUrgent, waitMs, signal, {
        onBegin: () => change(owner, 1),
        onLeft: () => queue.size === 0 && queues.delete(owner),
      })
    },
    leave: ({ owner = '' }) => {
      change(owner, -1)
      while (beginNext());
    },
    run: async (claim, work, refuse = refuseRun, signal) => {
      if (!(await fairQueue.enter(claim, signal))) return refuse()
      try {
        return await work()
      } finally {
        fairQueue.leave(claim)
      }
    },
  }
  return fairQueue
}

export type KeyedQueue = {
  /** Runs work when its turn in the queue of the key comes. */
  run<T>(key: string, claim: Claim, work: () => Promise<T>, refuse: () => T, signal: AbortSignal): Promise<T>
}

/** Creates a queue for each key, with the same settings. A queue is kept as long as it is used. */
export function createKeyedQueue(...settings: Parameters<typeof createFairQueue>): KeyedQueue {
  const queues = new Map<string, { queue: FairQueue; users: number }>()
  return {
    run: async (key, ...job) => {
      const own = queues.get(key) ?? { queue: createFairQueue(...settings), users: 0 }
      queues.set(key, own)
      own.users++
      try {
        return await own.queue.run(...job)
      } finally {
        if (--own.users === 0) queues.delete(key)
      }
    },
  }
}

/** Waits in the queue. Resolves with true when its turn comes, with false when that takes longer than `waitMs`. */
function waitIn(
  queue: Set<Waiting>,
  isUrgent: boolean,
  waitMs: number,
  signal: AbortSignal | undefined,
  { onBegin, onLeft }: { onBegin(): void; onLeft(): void },
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
      queue.delete(waiting)
      onLeft()
    }
    const begin = () => {
      end()
      onBegin()
      resolve(true)
    }
    const stop = () => {
      end()
      reject(signal?.reason)
    }
    const giveUp = () => {
      end()
      resolve(false)
    }
    const waiting: Waiting = { isUrgent, begin, giveUp }
    const timer = waitMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(giveUp, waitMs)
    signal?.addEventListener('abort', stop)
    queue.add(waiting)
  })
}
