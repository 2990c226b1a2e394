import sharp from 'sharp'
import { imageSizeOf } from '../../../lib/image-size.ts'

const picture = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#c04020' } })

it.each<[string, (width: number, height: number) => Promise<Buffer>]>([
  ['PNG', (width, height) => picture(width, height).png().toBuffer()],
  ['JPEG', (width, height) => picture(width, height).jpeg().toBuffer()],
  ['progressive JPEG', (width, height) => picture(width, height).jpeg({ progressive: true }).toBuffer()],
  ['JPEG with metadata', (width, height) => picture(width, height).withMetadata({ orientation: 6 }).jpeg().toBuffer()],
  ['GIF', (width, height) => picture(width, height).gif().toBuffer()],
  ['lossy WebP', (width, height) => picture(width, height).webp().toBuffer()],
  ['lossless WebP', (width, height) => picture(width, height).webp({ lossless: true }).toBuffer()],
  ['extended WebP', (width, height) => picture(width, height).withMetadata().webp().toBuffer()],
])('reads the size of a %s', async (_, encode) => {
  const bytes = await encode(300, 17)
  expect(imageSizeOf(bytes)).toEqual({ width: 300, height: 17 })
  expect(imageSizeOf(await encode(1, 1024))).toEqual({ width: 1, height: 1024 })
  // However much of the file is there, it throws nothing.
  for (let length = 0; length < Math.min(bytes.length, 700); length++) {
    expect([undefined, 300]).toContain(imageSizeOf(bytes.subarray(0, length))?.width)
  }
})

it.each(['', 'GIF', '<svg width="3" height="2"/>', '\xff\xd8\xff', '\xff\xd8\xff\xd9', 'RIFF\0\0\0\0WEBPVP9 \0\0\0\0'])(
  'finds no size in %j',
  (text) => {
    expect(imageSizeOf(Buffer.from(text, 'latin1'))).toBeUndefined()
  },
)

it('skips what decoders skip between the segments of a JPEG', async () => {
  const bytes = await picture(300, 17).jpeg().toBuffer()
  const firstEnd = 4 + bytes.readUInt16BE(4)
  const [start, rest] = [bytes.subarray(0, firstEnd), bytes.subarray(firstEnd)]
  for (const between of [
    [0x00, 0x12],
    [0xff, 0xff],
    [0xff, 0x01],
    [0x34, 0xff, 0x00, 0x56],
  ]) {
    const odd = Buffer.concat([start, Buffer.from(between), rest])
    expect(await sharp(odd).metadata()).toMatchObject({ width: 300, height: 17 })
    expect(imageSizeOf(odd)).toEqual({ width: 300, height: 17 })
  }
})
