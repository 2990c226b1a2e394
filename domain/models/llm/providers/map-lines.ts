import { mapBody } from './map-body.ts'

type Body = ReadableStream<Uint8Array<ArrayBuffer>>

/**
 * Maps a body of text in whole lines, all available lines at once. Scans each character once, however small the pieces
 * are. Lines are kept whole; `boundLines` limits them.
 */
export function mapLines(body: Body, map: (lines: string) => string): Body {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  const mapped = (lines: string) => (lines === '' ? undefined : encoder.encode(map(lines)))
  let pieces: string[] = []
  return mapBody(body, {
    piece: (bytes) => {
      const text = decoder.decode(bytes, { stream: true })
      const end = Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1
      if (end === 0) {
        pieces.push(text)
        return undefined
      }
      const lines = pieces.join('') + text.slice(0, end)
      pieces = [text.slice(end)]
      return mapped(lines)
    },
    end: () => mapped(pieces.join('') + decoder.decode()),
  })
}

/** Returns a `fetch` whose streams each pass through their own `mapLines`. */
export const fetchMapped =
  (fetch: typeof globalThis.fetch, createMap: () => (lines: string) => string): typeof globalThis.fetch =>
  async (input, init) => {
    const response = await fetch(input, init)
    return response.ok && response.body !== null
      ? new Response(mapLines(response.body, createMap()), response)
      : response
  }
