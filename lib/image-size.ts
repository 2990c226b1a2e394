import { imageTypeOf } from './image-type.ts'

export type ImageSize = { width: number; height: number }

/** Reads an image's size from its header. Undefined when there is none, or the image is of another kind. */
export function imageSizeOf(bytes: Uint8Array): ImageSize | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    return readSize(view, imageTypeOf(bytes))
  } catch (error) {
    // The header ends before its size.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function readSize(view: DataView, type: ReturnType<typeof imageTypeOf>): ImageSize | undefined {
  switch (type) {
    case 'image/png':
      return { width: view.getUint32(16), height: view.getUint32(20) }
    case 'image/gif':
      return { width: view.getUint16(6, true), height: view.getUint16(8, true) }
    case 'image/webp':
      return readWebp(view)
    case 'image/jpeg':
      return readJpeg(view)
    default:
      return undefined
  }
}

/** Markers of JPEG frames, which have the size: SOF0 to SOF15 without DHT, JPG and DAC. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Markers without a length: TEM, RST0 to RST7, SOI and EOI. 0 marks data. */
const isAlone = (marker: number): boolean => marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd9)

/**
 * Walks the segments up to the frame. Each has a marker and its length. Like the decoder, it skips fill bytes and
 * anything else between segments. Of an image in parts that end before the frame, it throws RangeError.
 */
function readJpeg(view: DataView): ImageSize {
  for (let offset = 2; ; ) {
    const marker = view.getUint8(offset) === 0xff ? view.getUint8(offset + 1) : undefined
    if (marker === undefined || marker === 0xff) offset++
    else if (isFrame(marker)) return { width: view.getUint16(offset + 7), height: view.getUint16(offset + 5) }
    else offset += isAlone(marker) ? 2 : 2 + view.getUint16(offset + 2)
  }
}

const tagAt = (view: DataView, offset: number): string =>
  String.fromCharCode(...[0, 1, 2, 3].map((index) => view.getUint8(offset + index)))
const uint24 = (view: DataView, offset: number): number =>
  view.getUint16(offset, true) + view.getUint8(offset + 2) * 0x10000

/** Reads the size of the first chunk: lossy, lossless, or extended with a canvas. */
function readWebp(view: DataView): ImageSize | undefined {
  switch (tagAt(view, 12)) {
    case 'VP8 ':
      return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
    case 'VP8L': {
      const bits = view.getUint32(21, true)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: uint24(view, 24) + 1, height: uint24(view, 27) + 1 }
    default:
      return undefined
  }
}
