import sharp, { type Metadata, type Sharp } from 'sharp'
import { type FittedImage, fitImage, fitsAsItIs } from '../../../domain/conversation/fit-image.ts'
import { MAX_IMAGE_BASE64 } from '../../../domain/models/llm/image-limits.ts'
import { animated, bomb, noise, picture, withFrames } from '../../support/pictures-by-sharp.ts'

const EDGE = 400
const never = new AbortController().signal

const resultOf = (bytes: Buffer, edge = EDGE) => fitImage('org', bytes, edge, never)

async function fitted(bytes: Buffer, edge = EDGE): Promise<FittedImage & Metadata & { bytes: Buffer }> {
  const result = await resultOf(bytes, edge)
  if ('problem' in result) throw new Error(result.problem)
  const encoded = Buffer.from(result.base64, 'base64')
  return { ...(await sharp(encoded).metadata()), ...result, bytes: encoded }
}

type Expected = { mediaType: string; width: number; height: number; depth?: string }

describe('an image that is too large for the model', () => {
  it.each<[string, () => Promise<Buffer>, Expected]>([
    [
      'a JPEG on its side',
      () => picture(800, 200).withMetadata({ orientation: 6 }).jpeg().toBuffer(),
      { mediaType: 'image/jpeg', width: 100, height: 400 },
    ],
    [
      'a PNG of 16 bits',
      () => picture(400, 800).ensureAlpha(0.5).toColourspace('rgb16').png().toBuffer(),
      { mediaType: 'image/png', width: 200, height: 400, depth: 'uchar' },
    ],
    ['a WebP', () => picture(401, 401).webp().toBuffer(), { mediaType: 'image/webp', width: 400, height: 400 }],
    [
      'a JPEG in CMYK',
      () => picture(1000, 10).toColourspace('cmyk').jpeg().toBuffer(),
      { mediaType: 'image/jpeg', width: 400, height: 4 },
    ],
    ['a line', () => picture(4000, 1).png().toBuffer(), { mediaType: 'image/png', width: 400, height: 1 }],
    ['an animated GIF', () => animated('gif', 2, 800), { mediaType: 'image/png', width: 400, height: 400 }],
  ])('is scaled down: %s', async (_, make, expected) => {
    const { base64, sizeBytes, ...result } = await fitted(await make())
    expect(result).toMatchObject(expected)
    expect(result.orientation).toBeUndefined()
    expect(sizeBytes).toBe(Buffer.from(base64, 'base64').length)
  })

  it('is encoded with losses when it is still too large', async () => {
    const bytes = await noise(1400, 1400)
    expect(bytes.length).toBeGreaterThan(MAX_IMAGE_BASE64)
    const result = await fitted(bytes, 1568)
    expect(result).toMatchObject({ mediaType: 'image/jpeg', width: 1400, height: 1400 })
    expect(result.base64.length).toBeLessThanOrEqual(MAX_IMAGE_BASE64)
  })
})

describe('an image that fits', () => {
  it.each<[string, () => Promise<Buffer>]>([
    ['PNG', () => picture(400, 3).png().toBuffer()],
    ['JPEG', () => picture(3, 400).jpeg().toBuffer()],
    ['WebP', () => picture(3, 3).webp().toBuffer()],
    ['PNG of 16 bits', () => picture(3, 3).toColourspace('rgb16').png().toBuffer()],
  ])('keeps its bytes: a %s', async (_, make) => {
    const bytes = await make()
    expect((await fitted(bytes)).bytes.equals(bytes)).toBe(true)
  })

  it('is turned upright', async () => {
    const bytes = await picture(30, 20).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    const { width, height, orientation } = await fitted(bytes)
    expect({ width, height, orientation }).toEqual({ width: 20, height: 30, orientation: undefined })
  })

  it.each<[string, string, () => Promise<Buffer>]>([
    ['an animated GIF', 'image/png', () => animated('gif', 2, 8)],
    ['a GIF', 'image/png', () => picture(8, 8).gif().toBuffer()],
    ['an animated WebP', 'image/webp', () => animated('webp', 2, 8)],
  ])('becomes its first frame in a type that every provider takes: %s', async (_, mediaType, make) => {
    const { bytes, ...result } = await fitted(await make())
    expect(result).toMatchObject({ mediaType, width: 8, height: 8 })
    expect(result.pages ?? 1).toBe(1)
    const { dominant } = await sharp(bytes).stats()
    expect(dominant.r).toBeGreaterThan(180)
    expect(dominant.b).toBeLessThan(80)
  })
})

describe('an image that cannot be decoded', () => {
  it.each<[string, () => Promise<Buffer>, string]>([
    [
      'a truncated JPEG',
      async () =>
        half(
          await sharp(await noise(300, 300))
            .jpeg()
            .toBuffer(),
        ),
      'It could not be decoded.',
    ],
    ['a truncated PNG', async () => half(await noise(300, 300)), 'It could not be decoded.'],
    ['a large truncated PNG', async () => half(await noise(600, 300)), 'It could not be decoded.'],
    ['a bomb', async () => bomb(), 'It has more than 50 megapixels.'],
    ['an animation without an end', () => withFrames(1001), 'It has more than 1000 frames.'],
    ['a page', async () => Buffer.from('<html>GIF89a'), 'It is not a PNG, JPEG, GIF or WebP image.'],
    [
      'SVG',
      async () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      'It is not a PNG, JPEG, GIF or WebP image.',
    ],
    ['nothing', async () => Buffer.alloc(0), 'It is not a PNG, JPEG, GIF or WebP image.'],
    ['a start only', async () => Buffer.from('GIF89a'), 'It could not be decoded.'],
  ])('is refused with a reason: %s', async (_, make, problem) => {
    expect(await resultOf(await make())).toEqual({ problem })
  })
})

const half = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length / 2)

it('leaves images in base64 as they are if they fit and are of their type, or if their size cannot be read', async () => {
  const base64Of = async (image: Sharp) => (await image.toBuffer()).toString('base64')
  const fits = async (base64: string | Promise<string>, type?: string) => fitsAsItIs(await base64, EDGE, type)
  expect(await fits(base64Of(picture(400, 400).png()))).toBe(true)
  expect(await fits(base64Of(picture(401, 4).png()))).toBe(false)
  expect(await fits(base64Of(picture(4, 4).gif()))).toBe(false)
  expect(await fits(base64Of(picture(4, 4).png()), 'image/png')).toBe(true)
  expect(await fits(base64Of(picture(4, 4).png()), 'image/jpeg')).toBe(false)
  expect(await fits('aGk=')).toBe(true)
  expect(await fits('a'.repeat(MAX_IMAGE_BASE64 + 4))).toBe(false)
})
