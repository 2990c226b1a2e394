export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'

/** First bytes of each kind. WebP's include the file's length. */
const SIGNATURES: [type: ImageType, matches: (start: string) => boolean][] = [
  ['image/png', (start) => start.startsWith('\x89PNG\r\n\x1a\n')],
  ['image/jpeg', (start) => start.startsWith('\xff\xd8\xff')],
  ['image/gif', (start) => start.startsWith('GIF87a') || start.startsWith('GIF89a')],
  ['image/webp', (start) => start.startsWith('RIFF') && start.startsWith('WEBP', 8)],
]
const SIGNATURE_BYTES = 12

/** Tells the kind of an image by its content. Returns undefined for anything else. */
export function imageTypeOf(bytes: Uint8Array): ImageType | undefined {
  const start = Buffer.from(bytes.subarray(0, SIGNATURE_BYTES)).toString('latin1')
  return SIGNATURES.find(([, matches]) => matches(start))?.[0]
}
