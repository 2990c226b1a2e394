import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import type { Edit } from './edits.ts'

/**
 * File through which a test controls its processes, which read it whenever they pass a point or look at the clock. It has a
 * byte for each point, and then a number for each slot: what its clock is ahead, in ms.
 */
const MAX_POINTS = 64
const CLOCK_BYTES = 8

/** Message of a process that is ready to listen, and waits until it is needed. */
export const WAITS = 'API waits'

/** Has a spare process wait in front of listening. */
const LISTENS = 'const api = await startApi(deps, {'
export const HOLD: Edit = { file: 'api/main.ts', find: LISTENS, replace: `await globalThis.__hold(); ${LISTENS}` }

const byte = Buffer.alloc(1)
const number = Buffer.alloc(CLOCK_BYTES)

export const isArmed = (controls: number, point: number): boolean =>
  readSync(controls, byte, 0, 1, point) === 1 && byte[0] === 1

export function clockOffset(controls: number, slot: number): number {
  const read = readSync(controls, number, 0, CLOCK_BYTES, MAX_POINTS + slot * CLOCK_BYTES)
  return read === CLOCK_BYTES ? number.readDoubleLE() : 0
}

export type Controls = {
  /** Has processes ask at these points from now on, and at no others. */
  arm(points: number[]): void
  setClock(slot: number, offsetMs: number): void
  close(): void
}

export function createControls(file: string): Controls {
  const controls = openSync(file, 'w+')
  return {
    arm: (points) => {
      const armed = Buffer.alloc(MAX_POINTS)
      for (const point of points) armed[point] = 1
      writeSync(controls, armed, 0, MAX_POINTS, 0)
    },
    setClock: (slot, offsetMs) => {
      const offset = Buffer.alloc(CLOCK_BYTES)
      offset.writeDoubleLE(offsetMs)
      writeSync(controls, offset, 0, CLOCK_BYTES, MAX_POINTS + slot * CLOCK_BYTES)
    },
    close: () => closeSync(controls),
  }
}
