import {
  type Beginning,
  type ConversationCache,
  createConversationCache,
  type GivenMessage,
} from '../../../domain/conversation/conversation-cache.ts'

const MiB = 1024 * 1024

/** Returns a beginning of so many messages, whose content nobody looks at here. */
const beginning = (messages: number, sizeBytes = 0): Beginning => ({
  through: messages,
  length: 0,
  sizeBytes,
  messages: Array.from({ length: messages }, () => ({}) as GivenMessage),
})

const kept = (cache: ConversationCache, ids: string[]) => ids.map((id) => cache.get(id) !== undefined)

describe('a cache of conversations', () => {
  afterEach(() => jest.restoreAllMocks())

  it('keeps conversations that take longer to read, up to 8 MiB each', () => {
    const cache = createConversationCache()
    cache.set('short', beginning(49))
    cache.set('long', beginning(50))
    cache.set('largest', beginning(50, 8 * MiB))
    cache.set('too large', beginning(50, 8 * MiB + 1))
    expect(kept(cache, ['short', 'long', 'largest', 'too large'])).toEqual([false, true, true, false])
    cache.set('long', beginning(60, 8 * MiB + 1))
    expect(kept(cache, ['long'])).toEqual([false])
  })

  it('forgets beyond 64 MiB what was not used for the longest time', () => {
    const cache = createConversationCache()
    const ids = Array.from({ length: 8 }, (_, index) => `${index}`)
    for (const id of ids) cache.set(id, beginning(50, 8 * MiB))
    expect(kept(cache, ids)).toEqual(ids.map(() => true))
    cache.get('0')
    cache.set('another', beginning(50, 1))
    expect(kept(cache, ['0', '1', '2', 'another'])).toEqual([true, false, true, true])
    cache.delete('0')
    cache.set('1', beginning(50, 7 * MiB))
    expect(kept(cache, ['1', '2', 'another'])).toEqual([true, true, true])
  })

  it('forgets conversations in which no turn began for ten minutes', () => {
    let now = 0
    jest.spyOn(performance, 'now').mockImplementation(() => now)
    const cache = createConversationCache()
    cache.set('old', beginning(50, 60 * MiB))
    cache.set('old', beginning(50, 8 * MiB))
    now += 9 * 60_000
    cache.set('new', beginning(50, 8 * MiB))
    expect(kept(cache, ['old', 'new'])).toEqual([true, true])
    now += 60_000
    expect(kept(cache, ['old', 'new'])).toEqual([false, true])
  })
})
