import { storableText } from '../../../lib/postgres-text.ts'
import { sleep } from '../../../lib/sleep.ts'
import { characterStart } from '../../../lib/utf8.ts'
import { createRedaction } from '../../tools/mcp/protocol/credentials.ts'

/** Maximum number of stored bytes of an answer. */
const KEPT_BYTES = 2048
/** Time for reading an answer after its head. A longer answer counts as received, too. */
const READ_MS = 2000
/** Maximum length of an escaped header value, as a multiple of the value's length. */
const MAX_FORM_FACTOR = 6

/**
 * Reads the beginning of an answer's body, without the values of headers and the secrets in them, which the server may
 * repeat, and drops the rest.
 * Never rejects: a body that breaks off ends there.
 */
export async function readBeginning(
  body: ReadableStream<Uint8Array> | null,
  headers: Record<string, string>,
  secrets: string[] = [],
): Promise<string> {
  const longest = Math.max(0, ...Object.values(headers).map(({ length }) => length))
  const bytes = await readBytes(body, KEPT_BYTES + MAX_FORM_FACTOR * longest)
  const redact = createRedaction({ apiKey: undefined, headers, secrets })
  const whole = redact(bytes.toString())
  const kept = redact(bytes.subarray(0, characterStart(bytes, KEPT_BYTES)).toString())
  // A value was cut where the texts begin to differ.
  let same = 0
  while (same < kept.length && kept[same] === whole[same]) same++
  return storableText(kept.slice(0, same))
}

async function readBytes(body: ReadableStream<Uint8Array> | null, most: number): Promise<Buffer> {
  const reader = body?.getReader()
  if (reader === undefined) return Buffer.alloc(0)
  const over = new AbortController()
  const late = sleep(READ_MS, over.signal).then(() => undefined)
  const pieces: Uint8Array[] = []
  try {
    for (let bytes = 0; bytes < most; ) {
      const read = await Promise.race([reader.read(), late])
      if (read?.value === undefined) break
      pieces.push(read.value)
      bytes += read.value.length
    }
  } catch {
    // The bytes read so far are kept.
  } finally {
    over.abort()
    reader.cancel().catch(() => {})
  }
  return Buffer.concat(pieces)
}
