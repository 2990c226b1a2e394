import { nextMarker } from './image-frames.ts'
import { imageTypeOf } from './image-type.ts'

export type ImageSize = { width: number; height: number }

/** Reads an image's size from its header. Undefined when there is none, or the image is of another kind. */
export function imageSizeOf(bytes: Uint8Array): ImageSize | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    return readSize(view, bytes)
  } catch (error) {
    // The header ends before its size.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function readSize(view: DataView, bytes: Uint8Array): ImageSize | undefined {
  switch (imageTypeOf(bytes)) {
    case 'image/png':
      return { width: view.getUint32(16), height: view.getUint32(20) }
    case 'image/gif':
      return { width: view.getUint16(6, true), height: view.getUint16(8, true) }
    case 'image/webp':
      return readWebp(view)
    case 'image/jpeg':
      return readJpeg(view, bytes)
    default:
      return undefined
  }
}

/** Markers of JPEG frames, which have the size: SOF0 to SOF15 without DHT, JPG and DAC. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Walks the segments up to the frame. Of an image in parts that end before the frame, it throws RangeError. */
function readJpeg(view: DataView, bytes: Uint8Array): ImageSize {
  let at = nextMarker(bytes, 2)
  while (!isFrame(view.getUint8(at + 1))) at = nextMarker(bytes, at + 2 + view.getUint16(at + 2))
  return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
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
