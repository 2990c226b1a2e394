import { hasMoreFramesThan, hasMoreScansThan } from '../../../lib/image-frames.ts'

const gif = (...parts: number[][]) => Buffer.from([...Buffer.from('GIF89a'), 1, 0, 1, 0, 0, 0, 0, ...parts.flat()])
const FRAME = [0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x4c, 1, 0]
const FRAME_WITH_COLOURS = [0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0x80, ...Array(6).fill(0x2c), 2, 2, 0x4c, 1, 0]
const COMMENT = [0x21, 0xfe, 2, 0x2c, 0x2c, 0]
const webp = (...chunks: [name: string, length: number][]) =>
  Buffer.concat([
    Buffer.from('RIFF....WEBP'),
    ...chunks.map(([name, length]) => {
      const header = Buffer.from(`${name}....`)
      header.writeUInt32LE(length, 4)
      return Buffer.concat([header, Buffer.alloc(length + (length % 2), 'VP8L')])
    }),
  ])

describe('the number of frames', () => {
  it.each([
    ['a GIF of two frames', gif(FRAME, FRAME, [0x3b]), 'image/gif', 2],
    ['a GIF with other parts', gif(COMMENT, FRAME_WITH_COLOURS, COMMENT, FRAME), 'image/gif', 2],
    ['a GIF that is cut off', gif(FRAME, FRAME.slice(0, 4)), 'image/gif', 2],
    ['a GIF with rubbish', gif(FRAME, [1, 2, 3], FRAME), 'image/gif', 1],
    ['a WebP', webp(['VP8X', 10], ['ANMF', 31], ['XMP ', 7], ['ANMF', 16]), 'image/webp', 2],
    ['a WebP with a frame in the rest of another', webp(['ANMF', 62]).fill('ANMF', 50, 54), 'image/webp', 2],
    ['a GIF with an empty extension', gif([0x21, 0xa7, 0, 0], FRAME, FRAME), 'image/gif', 2],
    ['a WebP whose length is a lie', webp(['ANMF', 16]).fill(0xff, 16, 20), 'image/webp', 1],
    ['a PNG', Buffer.from('ANMF,'), 'image/png', 0],
  ] as const)('is counted in %s', (_, bytes, type, count) => {
    const most = [0, 1, 2].find((each) => !hasMoreFramesThan(each, bytes, type))
    expect(most).toBe(count)
  })
})

describe('the number of scans', () => {
  const segment = (code: number, ...data: number[]) => [0xff, code, 0, data.length + 2, ...data]
  const SCAN = [...segment(0xda, 1, 2, 3), 0x12, 0xff, 0x00, 0xff, 0xd3, 0x34]
  const jpeg = (...parts: number[][]) => Buffer.from([0xff, 0xd8, ...parts.flat()])

  it.each([
    ['a JPEG', jpeg(segment(0xe0, 1), SCAN, [0xff, 0xd9]), 1],
    ['a progressive one', jpeg(SCAN, segment(0xc4, 7), SCAN, SCAN, [0xff, 0xd9]), 3],
    ['one with filling between the parts', jpeg([0xff, 0xff], SCAN, [0xff, 0xff, 0xff], SCAN), 2],
    ['one whose segment looks like a scan', jpeg(segment(0xe1, 0xff, 0xda, 0, 2), SCAN), 1],
    ['a JPEG that goes on after its end', jpeg(SCAN, [0xff, 0xd9], SCAN), 2],
    ['a JPEG that is cut off', jpeg(SCAN, [0xff, 0xda]), 1],
  ])('is counted in %s', (_, bytes, count) => {
    expect([0, 1, 2, 3].find((most) => !hasMoreScansThan(most, bytes))).toBe(count)
  })
})
