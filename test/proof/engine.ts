import type { Controls } from './controls.ts'
import { EFFECTS, type Stage } from './effects.ts'
import type { FaultKind, PlannedFault } from './faults.ts'
import { POINTS, type PointName } from './points.ts'
import type { Slot } from './site.ts'

/** Fault that took place. `until` is missing while it lasts; times are in ms since the epoch. */
export type Happened = {
  kind: FaultKind
  point: PointName
  nth: number
  /** Role of the process that came to the point. */
  process: string
  from: number
  until?: number
}

/** Has planned faults happen when processes come to their points. */
export type Engine = {
  open(stage: Stage): void
  plan(faults: PlannedFault[]): void
  /** A process has come to an armed point, and stands still until this resolves. */
  onPoint(slot: Slot, point: PointName): Promise<void>
  happened(): Happened[]
  isInForce(kind: FaultKind): boolean
  /** Ends all faults. No other happens afterwards. */
  end(): Promise<void>
}

type Armed = { fault: PlannedFault; seen: number }

export function createEngine(controls: Controls): Engine {
  let stage: Stage | undefined
  let armed: Armed[] = []
  let happened: Happened[] = []
  const firing = new Set<Promise<void>>()
  const lasting = new Set<() => Promise<void>>()
  /** Errors of faults that could not happen. */
  const failures: unknown[] = []

  const arm = (next: Armed[]) => {
    armed = next
    controls.arm(armed.map(({ fault }) => POINTS.indexOf(fault.point)))
  }
  const inflict = async ({ kind, point, nth, lastsMs }: PlannedFault, slot: Slot) => {
    if (stage === undefined) return
    const entry: Happened = { kind, point, nth, process: slot.role.name, from: Date.now() }
    happened.push(entry)
    const release = await EFFECTS[kind](stage, slot, lastsMs)
    if (release === undefined) {
      happened.splice(happened.indexOf(entry), 1)
      return
    }
    let ending: Promise<void> | undefined
    const end = () => {
      clearTimeout(timer)
      ending ??= release().then(() => {
        entry.until = Date.now()
        lasting.delete(end)
      })
      return ending
    }
    // `end` gets the error.
    const timer = setTimeout(() => void end().catch(() => {}), lastsMs)
    lasting.add(end)
  }
  const fire = async ({ second, ...fault }: PlannedFault, slot: Slot) => {
    const first = inflict(fault, slot)
    const other = second?.when === 'at once' && stage ? inflict(second, otherThan(slot, stage)) : undefined
    await Promise.all([first, other])
    if (second?.when === 'in recovery') arm([...armed, { fault: second, seen: 0 }])
  }
  return {
    open: (opened) => {
      stage = opened
    },
    plan: (faults) => {
      happened = []
      arm(faults.map((fault) => ({ fault, seen: 0 })))
    },
    onPoint: async (slot, point) => {
      const due = armed.filter((one) => one.fault.point === point && ++one.seen === one.fault.nth)
      if (due.length === 0) return
      arm(armed.filter((one) => !due.includes(one)))
      const fired = Promise.all(due.map(({ fault }) => fire(fault, slot))).then(
        () => {},
        (error) => void failures.push(error),
      )
      firing.add(fired)
      await fired.finally(() => firing.delete(fired))
    },
    happened: () => happened,
    isInForce: (kind) => happened.some((one) => one.kind === kind && one.until === undefined),
    end: async () => {
      arm([])
      await Promise.all(firing)
      // A fault that has just happened may have armed a second.
      arm([])
      await Promise.all([...lasting].map((end) => end()))
      if (failures.length > 0) throw failures.shift()
    },
  }
}

/** Returns the process that serves the other role. */
function otherThan({ role }: Slot, { site }: Stage): Slot {
  const slots = site.roles.filter((other) => other !== role).flatMap((other) => other.slots)
  const other = slots.find(({ state }) => state === 'serving') ?? slots[0]
  if (other === undefined) throw new Error('there is no other process')
  return other
}
