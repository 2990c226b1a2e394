import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { UnreadableSecret } from '../../../domain/kit/secrets.ts'
import { type EncryptionKey, keyFromBytes, keyFromText } from '../../../platform/secrets/encryption-key.ts'
import { createSecrets, keyIdOf } from '../../../platform/secrets/secrets.ts'

const TEXT = 'text-of-a-test, with an ü and a 🔑'
const PLACE = 'llm_providers/0b0c/0d0e/api_key'
const bytesOf = (name: string) => createHash('sha256').update(name).digest()
const keyOf = (name: string) => keyFromBytes(bytesOf(name))
const secretsOf = (current: string, ...previous: string[]) =>
  createSecrets({ current: keyOf(current), previous: previous.map(keyOf) })

/** Returns the sentence with which the bytes are refused. */
function refusal(bytes: Uint8Array, place = PLACE, secrets = secretsOf('a')): string {
  try {
    secrets.decrypt(bytes, place)
  } catch (error) {
    if (error instanceof UnreadableSecret) return error.message
    throw error
  }
  throw new Error('The secret was read.')
}

describe('a stored secret', () => {
  it.each(['', 'k', TEXT, 'x'.repeat(64 * 1024)])('is read as it was written', (text) => {
    const bytes = secretsOf('a').encrypt(text, PLACE)
    expect(secretsOf('a').decrypt(new Uint8Array(bytes), PLACE)).toBe(text)
    expect(bytes.length).toBe(37 + Buffer.byteLength(text))
  })

  it('is read as release 0.1 wrote it', () => {
    const written = '0119f247f185f6065e725e5f46ddafb25fedad76d8b85b49e52aad6d1d476d004059955c2efd538c7757d3'
    expect(secretsOf('a').decrypt(Buffer.from(written, 'hex'), PLACE)).toBe('sk-old')
  })

  it('has other bytes each time', () => {
    const all = Array.from({ length: 100 }, () => Buffer.from(secretsOf('a').encrypt(TEXT, PLACE)).toString('hex'))
    const nonces = all.map((hex) => hex.slice(18, 42))
    expect([new Set(all).size, new Set(nonces).size]).toEqual([100, 100])
  })

  it('is read with a previous key, and written with the current one', () => {
    const old = secretsOf('a').encrypt(TEXT, PLACE)
    const both = secretsOf('b', 'c', 'a')
    expect(both.decrypt(old, PLACE)).toBe(TEXT)
    const renewed = both.encrypt(TEXT, PLACE)
    expect(keyIdOf(renewed)).toBe(keyOf('b').id)
    expect(refusal(renewed)).toMatch(`needs the key ${keyOf('b').id}, which this process does not have`)
  })

  it('is refused under a key that this process does not have, with the variable that takes it', () => {
    const bytes = secretsOf('b').encrypt(TEXT, PLACE)
    expect(refusal(bytes)).toMatch(/add that key to SECRETS_ENCRYPTION_KEY_PREVIOUS/)
  })

  it.each(['llm_providers/0b0c/0d0f/api_key', 'llm_providers/0b0c/0d0e/api_keys', ''])('is refused in %j', (place) => {
    expect(refusal(secretsOf('a').encrypt(TEXT, PLACE), place)).toMatch(/was changed or moved to another row/)
  })

  const SECTIONS: [section: string, at: number, sentence: RegExp][] = [
    ['version', 0, /in a form that this release does not know/],
    ['key id, at its beginning', 1, /needs the key/],
    ['key id, at its end', 8, /needs the key/],
    ['nonce, at its beginning', 9, /was changed/],
    ['nonce, at its end', 20, /was changed/],
    ['ciphertext, at its beginning', 21, /was changed/],
    ['ciphertext, at its end', -17, /was changed/],
    ['tag, at its beginning', -16, /was changed/],
    ['tag, at its end', -1, /was changed/],
  ]
  it.each(SECTIONS)('is refused with another bit in its %s', (_section, at, sentence) => {
    const bytes = secretsOf('a').encrypt(TEXT, PLACE)
    bytes.set([(bytes.at(at) ?? 0) ^ 1], at < 0 ? bytes.length + at : at)
    expect(refusal(bytes)).toMatch(sentence)
  })

  it('is refused at any length but its own, with nothing of the key or the text in the sentence', () => {
    const bytes = secretsOf('a').encrypt(TEXT, PLACE)
    const key = bytesOf('a')
    const known = [TEXT.slice(0, 8), key.toString('hex').slice(0, 16), key.toString('base64').slice(0, 10)]
    const body = Buffer.from(bytes.subarray(9)).toString('hex').slice(0, 8)
    for (const broken of [...bytes.keys()].map((length) => bytes.subarray(0, length)).concat(Buffer.from(TEXT))) {
      const sentence = refusal(broken)
      for (const part of [...known, body]) expect(sentence).not.toContain(part)
    }
    expect(refusal(Buffer.concat([bytes, Buffer.of(0)]))).toMatch(/was changed/)
  })
})

describe('a key', () => {
  it('is the same in each of its forms', () => {
    const hex = bytesOf('a').toString('hex')
    const ids = [hex, hex.toUpperCase(), bytesOf('a').toString('base64')].map((text) => keyFromText(text).id)
    expect(ids).toEqual(Array(3).fill(keyOf('a').id))
    const bytes = secretsOf('a').encrypt(TEXT, PLACE)
    const secrets = createSecrets({ current: keyFromText(hex), previous: [] })
    expect(secrets.decrypt(bytes, PLACE)).toBe(TEXT)
  })

  it('shows nothing of its bytes, neither in its id nor when it is printed', () => {
    const key: EncryptionKey = keyOf('a')
    expect(key.id).toMatch(/^[0-9a-f]{16}$/)
    const hex = bytesOf('a').toString('hex')
    for (const shown of [key.id, inspect(key, { depth: 9 }), JSON.stringify(key)]) {
      expect(shown).not.toContain(hex.slice(0, 8))
      expect(hex).not.toContain(shown)
    }
  })
})
