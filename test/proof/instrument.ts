/**
 * Loaded into a process of the service with `node --import`: edits its modules as they are loaded, so that the product
 * has no code for tests. The environment says where the plants and the controls are. Threads with an environment of
 * their own are left alone.
 */
import { openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { flushCompileCache, registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { clockOffset, HOLD, isArmed, WAITS } from './controls.ts'
import { type Edit, instrumentText } from './edits.ts'
import { POINTS, type PointName, pointEdits } from './points.ts'

/** Pipe to the test, on which a process says that it is at a point, and is told to go on. */
const ASK = 3
const ROOT = pathToFileURL(`${process.cwd()}/`).href

function editModules(plants: Edit[]): void {
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      if (!url.startsWith(ROOT) || loaded.source == null) return loaded
      const ofFile = ({ file }: Edit) => url === ROOT + file
      const planted = plants.filter(ofFile)
      const points = [...pointEdits, HOLD].filter(ofFile)
      if (planted.length + points.length === 0) return loaded
      const text = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
      return { ...loaded, source: instrumentText(text, planted, points) }
    },
  })
}

/** Has this process's clock go wrong by the offset in its controls. */
function shiftClock(controls: number, slot: number): void {
  const now = Date.now
  Date.now = () => now() + clockOffset(controls, slot)
  globalThis.Date = new Proxy(Date, {
    construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [Date.now()] : given, made),
  })
}

/** Stops the whole process at a point that is armed, until the test has decided what happens there. */
function pointOf(controls: number): (name: PointName) => void {
  const places = new Map(POINTS.map((name, index) => [name, index]))
  return (name) => {
    if (!isArmed(controls, places.get(name) ?? 0)) return
    writeSync(ASK, `${name}\n`)
    readSync(ASK, Buffer.alloc(1))
  }
}

/** Waits in front of listening until the test sends a signal. */
function hold(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  process.once('SIGUSR2', () => resolve())
  // For the processes started next: a killed one does not write its cache.
  flushCompileCache()
  process.stdout.write(`${JSON.stringify({ msg: WAITS })}\n`)
  return promise
}

const { PROOF_PLANTS, PROOF_CONTROLS, PROOF_SLOT } = process.env
if (PROOF_PLANTS !== undefined && PROOF_CONTROLS !== undefined) {
  const controls = openSync(PROOF_CONTROLS, 'r')
  editModules(JSON.parse(readFileSync(PROOF_PLANTS, 'utf8')))
  shiftClock(controls, Number(PROOF_SLOT))
  // A thread does not stop with its process at a point.
  Object.assign(globalThis, { __point: isMainThread ? pointOf(controls) : () => {}, __hold: hold })
}
