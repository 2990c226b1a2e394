import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import sharp from 'sharp'
import type { RunningServices } from '../dev/services/index.ts'
import { type Loop, shown, startApi, timed } from './api.ts'
import type { Child } from './child.ts'
import { goal, print } from './report.ts'

const UPLOADS = 50
const UPLOAD_MIB = 10
const MAX_MIB = 512
const MAX_DELAY_MS = 50
/** Side of the picture that is decoded: 12 megapixels, as of a telephone. */
const [WIDTH, HEIGHT] = [4000, 3000]
const THUMBNAILS = 100
const MIB = 1024 * 1024

/**
 * Sends 50 uploads of 10 MiB at once to a process of the API, then a hundred photographs one after another from
 * two clients. Prints memory, thumbnails per second and the delay of the event loop.
 */
export async function benchImages(services: RunningServices, port: number): Promise<boolean> {
  const app = await startApi(services, port)
  const url = `http://127.0.0.1:${port}/v1/images`
  try {
    await upload(url, await photograph(WIDTH, HEIGHT))
    await app.ask('delay')
    const before = statusMib(app, 'VmRSS')
    const large = await padded()
    const seconds = await timed(() => Promise.all(Array.from({ length: UPLOADS }, () => upload(url, large))))
    const loop = await app.ask<Loop>('delay')
    const peak = statusMib(app, 'VmHWM')
    print(
      `${UPLOADS} uploads of ${UPLOAD_MIB} MiB at once: ${seconds.toFixed(1)} s; ${before} MiB before, ${peak} MiB at most`,
    )
    print(`event loop meanwhile: ${shown(loop)}`)
    const photo = await photograph(WIDTH, HEIGHT)
    const perSecond = THUMBNAILS / (await timed(() => Promise.all([sendEach(url, photo), sendEach(url, photo)])))
    print(
      `photographs of ${WIDTH} × ${HEIGHT}, ${(photo.length / MIB).toFixed(1)} MiB: ${perSecond.toFixed(1)} per second`,
    )
    print(`event loop meanwhile: ${shown(await app.ask<Loop>('delay'))}`)
    const reads = await timed(() => readMany(url))
    print(
      `read again: ${((UPLOADS * UPLOAD_MIB) / reads).toFixed(0)} MiB/s; event loop ${shown(await app.ask<Loop>('delay'))}`,
    )
    await sleep(1000)
    print(`memory at the end: ${statusMib(app, 'VmRSS')} MiB, ${statusMib(app, 'VmHWM')} MiB at most`)
    return [
      goal(peak <= MAX_MIB, `${UPLOADS} uploads of ${UPLOAD_MIB} MiB within ${MAX_MIB} MiB: ${peak} MiB`),
      goal(
        loop.p99 <= MAX_DELAY_MS,
        `p99 of the event loop's delay within ${MAX_DELAY_MS} ms: ${loop.p99.toFixed(1)} ms`,
      ),
    ].every(Boolean)
  } finally {
    await app.stop()
  }
}

/** Returns a figure of a process in MiB, by its name in /proc. */
const statusMib = ({ pid }: Child, name: 'VmRSS' | 'VmHWM'): number =>
  Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)

const photograph = (width: number, height: number): Promise<Buffer> =>
  sharp({
    create: { width, height, channels: 3, background: '#888', noise: { type: 'gaussian', mean: 128, sigma: 20 } },
  })
    .jpeg({ quality: 60 })
    .toBuffer()

/** Returns a photograph with bytes behind it, which every decoder ignores. */
async function padded(): Promise<Buffer> {
  const photo = await photograph(WIDTH, HEIGHT)
  return Buffer.concat([photo, Buffer.alloc(UPLOAD_MIB * MIB - photo.length)])
}

async function upload(url: string, bytes: Buffer): Promise<void> {
  const form = new FormData()
  form.append('file', new Blob([new Uint8Array(bytes)], { type: 'image/jpeg' }), 'photograph.jpg')
  const answer = await fetch(url, { method: 'POST', body: form })
  if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`)
  await answer.body?.cancel()
}

async function sendEach(url: string, photo: Buffer): Promise<void> {
  for (let count = 0; count < THUMBNAILS / 2; count++) await upload(url, photo)
}

/** Reads the large images again, ten at a time. */
async function readMany(url: string): Promise<void> {
  const { data } = (await (await fetch(`${url}?limit=100&offset=${THUMBNAILS}`)).json()) as { data: { id: string }[] }
  const ids = data.slice(0, UPLOADS).map(({ id }) => id)
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      for (let id = ids.pop(); id !== undefined; id = ids.pop()) await (await fetch(`${url}/${id}`)).arrayBuffer()
    }),
  )
}
