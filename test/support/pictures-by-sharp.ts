import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'

const RED = { r: 255, g: 0, b: 0 }
const BLUE = { r: 0, g: 0, b: 255 }
/** Picture of one colour, to be given a format. */
export const picture = (width: number, height: number, background = RED) =>
  sharp({ create: { width, height, channels: 3, background } })
/** Red on the left, blue on the right. */
export const twoColours = async (width = 400, height = 200) => {
  const right = await picture(width / 2, height, BLUE)
    .png()
    .toBuffer()
  return sharp(
    await picture(width, height)
      .composite([{ input: right, left: width / 2, top: 0 }])
      .png()
      .toBuffer(),
  )
}
/** Animation whose frames alternate between red and blue. */
export function animated(format: 'gif' | 'webp', frames: number, side = 16): Promise<Buffer> {
  const frame = side * side * 3
  const raw = Buffer.alloc(frames * frame)
  // A byte of each frame differs, or equal frames would be merged.
  for (let at = 0; at < frames; at++) {
    for (let pixel = at * frame; pixel < (at + 1) * frame; pixel += 3) raw[pixel + (at % 2) * 2] = 255
    raw.writeUInt16BE(at, at * frame)
  }
  const image = sharp(raw, { raw: { width: side, height: side * frames, channels: 3, pageHeight: side } })
  return format === 'gif' ? image.gif({ effort: 1 }).toBuffer() : image.webp({ effort: 0, lossless: true }).toBuffer()
}

/** PNG in which every pixel differs, of about as many bytes as it has. */
export const noise = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: RED, noise: { type: 'gaussian', mean: 128, sigma: 60 } } })
    .png()
    .toBuffer()

/** Animated WebP with the given number of frames, which all are copies of one. */
export async function withFrames(count: number): Promise<Buffer> {
  const one = await animated('webp', 2, 2)
  const at = one.indexOf('ANMF')
  const frame = one.subarray(at, at + 8 + one.readUInt32LE(at + 4))
  const whole = Buffer.concat([one.subarray(0, at), ...Array.from({ length: count }, () => frame)])
  whole.writeUInt32LE(whole.length - 8, 4)
  return whole
}

/** PNG of 30,000 × 30,000 pixels in a hundred kilobytes. */
export function bomb(): Buffer {
  const side = 30_000
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  // One bit per pixel, so a line has a byte for its filter and one for each eight pixels.
  header[8] = 1
  const lines = deflateSync(Buffer.alloc(side * (1 + side / 8)))
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([signature, chunkOf('IHDR', header), chunkOf('IDAT', lines), chunkOf('IEND', Buffer.alloc(0))])
}

function chunkOf(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}
