import type { ImageType } from './image-type.ts'

/**
 * Tells whether an image has more frames than that. Decodes nothing: decoders take quadratic time
 * in the number of frames before they report it.
 */
export function hasMoreFramesThan(most: number, bytes: Buffer, type: ImageType): boolean {
  let count = 0
  for (const _ of framesOf(bytes, type)) {
    if (++count > most) return true
  }
  return false
}

function framesOf(bytes: Buffer, type: ImageType): Iterable<number> {
  if (type === 'image/webp') return webpFrames(bytes)
  return type === 'image/gif' ? gifFrames(bytes) : []
}

/**
 * Yields each place of the name of a WebP's frames, ANMF. The lengths of its parts are no guide: decoders look for frames
 * in the rest of a frame that is longer than its picture.
 */
function* webpFrames(bytes: Buffer): Generator<number> {
  for (let at = bytes.indexOf('ANMF'); at >= 0; at = bytes.indexOf('ANMF', at + 4)) yield at
}

const EXTENSION = 0x21
const FRAME = 0x2c
const COMMENT = 0xfe

/** Yields the places of a GIF's frames. After the header come frames and extensions, each followed by sub-blocks. */
function* gifFrames(bytes: Buffer): Generator<number> {
  for (let at = 13 + colourTableBytes(bytes[10]); at < bytes.length; ) {
    if (bytes[at] === FRAME) {
      yield at
      at = afterSubBlocks(bytes, at + 11 + colourTableBytes(bytes[at + 9]))
    } else if (bytes[at] === EXTENSION) at = afterExtension(bytes, at)
    else return
  }
}

/** Like the decoder, takes the first sub-block for one even if it is empty, except in a comment. */
const afterExtension = (bytes: Buffer, at: number): number =>
  afterSubBlocks(bytes, at + 2 + (bytes[at + 1] === COMMENT ? 0 : 1 + (bytes[at + 2] ?? 0)))

/** Size of the colour table, from the flags: one bit for its presence, three for its size. */
const colourTableBytes = (flags = 0): number => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1))

/** Sub-blocks begin with their length, and end with an empty one. */
function afterSubBlocks(bytes: Buffer, start: number): number {
  let at = start
  for (let length = bytes[at] ?? 0; length > 0; length = bytes[at] ?? 0) at += length + 1
  return at + 1
}

const MARKER = 0xff
const SCAN = 0xda

/**
 * Tells whether a JPEG has more scans than that. Each scan of a progressive one is decoded over the whole picture before
 * anything of it can be seen, and a scan may be a hundred bytes long.
 */
export function hasMoreScansThan(most: number, bytes: Buffer): boolean {
  let count = 0
  for (const _ of jpegScans(bytes)) {
    if (++count > most) return true
  }
  return false
}

/** Yields the places of a JPEG's scans: segments with a length, and behind a scan's its data, up to the next marker. */
function* jpegScans(bytes: Buffer): Generator<number> {
  for (let at = nextMarker(bytes, 2); at + 4 <= bytes.length; ) {
    const isScan = bytes[at + 1] === SCAN
    if (isScan) yield at
    at = nextMarker(bytes, at + 2 + bytes.readUInt16BE(at + 2))
  }
}

/** Finds the next marker that begins a segment: not a byte of data, a restart, or the filling before a marker. */
export function nextMarker(bytes: Uint8Array, start: number): number {
  for (let at = bytes.indexOf(MARKER, start); at >= 0; at = bytes.indexOf(MARKER, at + 1)) {
    const code = bytes[at + 1] ?? 0
    const isAlone = code <= 0x01 || code === MARKER || (code >= 0xd0 && code <= 0xd9)
    if (!isAlone) return at
  }
  return bytes.length
}
