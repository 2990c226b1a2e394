import assert from 'node:assert/strict'
import { crc32 } from 'node:zlib'
import sharp from 'sharp'
import { fitImage } from '../../../../domain/conversation/fit-image.ts'
import { DomainError } from '../../../../domain/kit/errors.ts'
import { MAX_PIXELS } from '../../../../domain/session-data/images/decoder.ts'
import { examineImage } from '../../../../domain/session-data/images/examine.ts'
import { hasMoreFramesThan, hasMoreScansThan } from '../../../../lib/image-frames.ts'
import { imageSizeOf } from '../../../../lib/image-size.ts'
import { type ImageType, imageTypeOf } from '../../../../lib/image-type.ts'
import { animated, picture, twoColours } from '../../../support/pictures-by-sharp.ts'
import { type Outcome, type Parser, refusal } from '../parser.ts'

const THUMBNAIL = 200
const EDGE = 64
const never = new AbortController().signal

const small = () => picture(9, 7)
const SEEDS: Record<ImageType, (() => Promise<Buffer>)[]> = {
  'image/png': [
    () => small().png().toBuffer(),
    () => small().png({ palette: true }).toBuffer(),
    () => small().png({ progressive: true }).withMetadata({ orientation: 6 }).toBuffer(),
    async () => (await twoColours(120, 80)).png().toBuffer(),
  ],
  'image/jpeg': [
    () => small().jpeg().toBuffer(),
    () => small().jpeg({ progressive: true }).toBuffer(),
    () => small().jpeg().withMetadata({ orientation: 6 }).toBuffer(),
    async () => (await twoColours(120, 80)).jpeg({ mozjpeg: true }).toBuffer(),
  ],
  'image/gif': [() => small().gif().toBuffer(), () => animated('gif', 3), () => animated('gif', 12, 4)],
  'image/webp': [
    () => small().webp().toBuffer(),
    () => small().webp({ lossless: true }).toBuffer(),
    () => small().webp().withMetadata({ orientation: 6 }).toBuffer(),
    () => animated('webp', 3),
  ],
}
const WORDS: Record<ImageType, string[]> = {
  'image/png': ['IHDR', 'IDAT', 'PLTE', 'tRNS', 'eXIf', 'acTL', 'fcTL', 'iCCP', 'zTXt', 'IEND'],
  'image/jpeg': [
    '\xff\xd8',
    '\xff\xc0',
    '\xff\xc2',
    '\xff\xc4',
    '\xff\xda',
    '\xff\xdd',
    '\xff\xe1',
    'Exif\0\0',
    '\xff\xff',
    '\xff\xd9',
  ],
  'image/gif': ['GIF87a', '\x21\xff\x0bNETSCAPE2.0', '\x21\xf9\x04', '\x2c\0\0\0\0', '\x21\xfe', '\x3b', '\0'],
  'image/webp': ['VP8 ', 'VP8L', 'VP8X', 'ANIM', 'ANMF', 'ALPH', 'EXIF', 'XMP ', 'ICCP', 'RIFF'],
}

const seedsOf = (type: ImageType) => Promise.all(SEEDS[type].map((seed) => seed()))

const header: Parser = {
  name: 'image-headers',
  seeds: async () => (await Promise.all(Object.keys(SEEDS).map((type) => seedsOf(type as ImageType)))).flat(),
  words: Object.values(WORDS).flat(),
  repair: withChecksums,
  check: (input) => {
    const type = imageTypeOf(input)
    const size = imageSizeOf(input)
    for (const edge of [size?.width ?? 0, size?.height ?? 0])
      assert(Number.isInteger(edge) && edge >= 0 && edge < 2 ** 32)
    if (type === undefined) return 'refused'
    // Each frame and scan takes bytes, so there cannot be more.
    assert.equal(hasMoreFramesThan(input.length, input, type), false)
    assert.equal(hasMoreScansThan(input.length, input), false)
    return size === undefined ? 'refused' : 'accepted'
  },
}

const decoder = (type: ImageType): Parser => ({
  name: type.replace('/', '-'),
  seeds: () => seedsOf(type),
  words: WORDS[type],
  cost: 12,
  repair: type === 'image/png' ? withChecksums : undefined,
  check: async (input) => {
    const found = imageTypeOf(input)
    if (found === undefined) return 'refused'
    const outcome = await examine(input, found)
    const fitted = await fitImage('owner', input, EDGE, never)
    if ('problem' in fitted) return outcome
    const { width, height } = await sharp(Buffer.from(fitted.base64, 'base64')).metadata()
    assert(Math.max(width, height) <= EDGE, `fitted to ${width} × ${height}`)
    return outcome
  },
})

async function examine(input: Buffer, type: ImageType): Promise<Outcome> {
  try {
    const { width, height, thumbnail } = await examineImage(input, type)
    assert(width * height <= MAX_PIXELS && width > 0 && height > 0)
    const shown = await sharp(thumbnail).metadata()
    assert(Math.max(shown.width, shown.height) <= THUMBNAIL)
    await compare(input, type)
    return 'accepted'
  } catch (error) {
    return refusal(error, DomainError)
  }
}

/** Compares what the service reads from an image's headers with its decoder. */
async function compare(input: Buffer, type: ImageType): Promise<void> {
  const { width, height, pageHeight = height, pages = 1 } = await sharp(input, { animated: true }).metadata()
  if (pages > 1) assert(hasMoreFramesThan(pages - 1, input, type), `the decoder sees ${pages} frames`)
  // The decoder corrects the size of some GIFs by their first frame.
  if (type !== 'image/gif') assert.deepEqual(imageSizeOf(input), { width, height: pageHeight })
}

/** Makes the checksums of a PNG's chunks right. */
function withChecksums(input: Buffer): Buffer {
  if (imageTypeOf(input) !== 'image/png') return input
  const changed = Buffer.from(input)
  for (let at = 8; at + 12 <= changed.length; ) {
    const end = at + 8 + changed.readUInt32BE(at)
    if (end + 4 > changed.length) break
    changed.writeUInt32BE(crc32(changed.subarray(at + 4, end)), end)
    at = end + 4
  }
  return changed
}

export const IMAGES: Parser[] = [header, ...(Object.keys(SEEDS) as ImageType[]).map(decoder)]
