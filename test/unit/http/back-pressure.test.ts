import type { ServerResponse } from 'node:http'
import { Writable } from 'node:stream'
import { writeInPieces } from '../../../api/http/back-pressure.ts'

const PIECE_BYTES = 128 * 1024
const TEXT = 'abc'.repeat(PIECE_BYTES)
const TAKES_MS = 50

/** Creates a client that takes a piece every 50 ms, until it takes no more. The stream stands in for the response. */
function createClient(takes = Number.POSITIVE_INFINITY) {
  const taken: string[] = []
  const write = (bytes: Buffer, _: string, done: () => void) => {
    if (taken.length >= takes) return
    taken.push(bytes.toString())
    setTimeout(done, TAKES_MS)
  }
  const client = new Writable({ highWaterMark: 1, write })
  const listeners = () => client.listenerCount('drain') + client.listenerCount('close')
  return { res: client as unknown as ServerResponse, client, taken, listeners }
}

/** Returns a signal that aborts after the first piece has been taken. */
function abortSoon(reason: string): AbortSignal {
  const ended = new AbortController()
  setTimeout(() => ended.abort(reason), 1.5 * TAKES_MS)
  return ended.signal
}

const isPatient = (reason: unknown) => reason === 'cycle'

describe('writing in pieces', () => {
  it('waits until each piece has been taken', async () => {
    const { res, client, taken, listeners } = createClient()
    const before = listeners()
    expect(await writeInPieces(res, TEXT)).toBe(true)
    expect(client.writableLength).toBe(0)
    expect(taken.map((piece) => piece.length)).toEqual([PIECE_BYTES, PIECE_BYTES, PIECE_BYTES])
    expect(taken.join('')).toBe(TEXT)
    expect(listeners()).toBe(before)
  })

  it('writes all pieces if the reason to abort allows it', async () => {
    const { res, client, taken, listeners } = createClient()
    const before = listeners()
    expect(await writeInPieces(res, TEXT, { signal: abortSoon('cycle'), isPatient })).toBe(true)
    expect(client.writableLength).toBe(0)
    expect(taken.join('')).toBe(TEXT)
    expect(listeners()).toBe(before)
  })

  it('drops the rest at once for any other reason', async () => {
    const { res, client } = createClient()
    expect(await writeInPieces(res, TEXT, { signal: abortSoon('shutdown'), isPatient })).toBe(false)
    expect(client.writableLength).toBeGreaterThan(0)
    const ended = new Promise((resolve) => client.on('finish', resolve))
    client.end()
    await ended
  })

  it.each(['cycle', 'none'])('gives up a client that takes no more: %s', async (reason) => {
    const { res, client } = createClient(2)
    const signal = reason === 'cycle' ? abortSoon('cycle') : undefined
    expect(await writeInPieces(res, TEXT, { signal, isPatient, stalledMs: 3000 })).toBe(false)
    client.destroy()
  })

  it('ends when the client disconnects', async () => {
    const { res, client } = createClient(1)
    setTimeout(() => client.destroy(), TAKES_MS)
    expect(await writeInPieces(res, TEXT)).toBe(false)
  })
})
