import { pino } from 'pino'
import sharp from 'sharp'
import type { ContentPart } from '../../../contract/messages.ts'
import { createImageCache } from '../../../domain/conversation/image-cache.ts'
import { loadImages } from '../../../domain/conversation/images.ts'
import { createImageLoads, type ImageReader } from '../../../domain/conversation/load-image.ts'
import { messageOf } from '../llm/ask.ts'

const never = new AbortController().signal
const fileOf = (image_id: string): ContentPart => ({ type: 'image_file', image_id, filename: 'a.png' })
const text = (words: string): ContentPart => ({ type: 'text', text: words })
const notFound = (id: string) => text(`[image not found: ${id}]`)
const data = (bytes: Buffer, media_type = 'image/png') => ({
  type: 'image',
  base64: bytes.toString('base64'),
  media_type,
})
const png = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: '#c02020' } })
    .png()
    .toBuffer()

const depsOf = () => ({
  outgoing: { allowPrivateNetwork: false },
  log: pino({ enabled: false }),
  owners: { ownerOf: async (id: string) => id },
  images: createImageCache(),
  imageLoads: createImageLoads(),
})

/** Images of two organizations, in place of the record. `asked` names every access to it. */
function createRecord(images: Record<string, Record<string, Buffer>>) {
  const asked: string[] = []
  const readerOf = (organizationId: string, maxEdge = 2048): ImageReader => ({
    organizationId,
    maxEdge,
    existing: async (ids) => {
      asked.push(`existing ${ids.join(' ')}`)
      return new Set(ids.filter((id) => images[organizationId]?.[id] !== undefined))
    },
    read: async (id) => {
      asked.push(`read ${id}`)
      return images[organizationId]?.[id]
    },
  })
  return { images, asked, readerOf }
}

describe('uploaded images', () => {
  it('become data in user messages, in the organization of the session only', async () => {
    const [one, other] = [await png(3, 2), await png(2, 3)]
    const { asked, readerOf } = createRecord({ a: { one }, b: { other } })
    const messages = [
      messageOf('user', text('Look'), fileOf('one'), fileOf('other'), fileOf('none'), fileOf('one')),
      messageOf('agent', fileOf('one')),
    ]
    const before = structuredClone(messages)
    const loaded = await loadImages(depsOf(), readerOf('a'), messages, never)
    expect(loaded.map(({ content }) => content)).toEqual([
      [text('Look'), data(one), notFound('other'), notFound('none'), data(one)],
      [fileOf('one')],
    ])
    expect(messages).toEqual(before)
    expect(asked).toEqual(['existing one none other', 'read one'])
  })

  it('cost nothing where there are none', async () => {
    const { asked, readerOf } = createRecord({})
    const messages = [messageOf('user', text('Hi')), messageOf('agent', fileOf('one'))]
    expect(await loadImages(depsOf(), readerOf('a'), messages, never)).toBe(messages)
    expect(asked).toEqual([])
  })

  it('are read and scaled once for each size that models take', async () => {
    const { asked, readerOf } = createRecord({ a: { large: await png(3000, 30) }, b: { large: await png(1, 1) } })
    const deps = depsOf()
    const sizeFor = async (organizationId: string, maxEdge: number) => {
      const [message] = await loadImages(
        deps,
        readerOf(organizationId, maxEdge),
        [messageOf('user', fileOf('large'))],
        never,
      )
      const [part] = message?.content ?? []
      if (part?.type !== 'image') throw new Error(JSON.stringify(part))
      return (await sharp(Buffer.from(part.base64 ?? '', 'base64')).metadata()).width
    }
    expect([await sizeFor('a', 2048), await sizeFor('a', 2048)]).toEqual([2048, 2048])
    expect(await sizeFor('a', 1568)).toBe(1568)
    expect(await sizeFor('b', 2048)).toBe(1)
    expect(asked.filter((access) => access === 'read large')).toHaveLength(3)
  })

  it('are gone with the next call once they are deleted, whatever is cached', async () => {
    const { images, readerOf } = createRecord({ a: { one: await png(3, 2) } })
    const deps = depsOf()
    const ask = () => loadImages(deps, readerOf('a'), [messageOf('user', fileOf('one'))], never)
    expect((await ask())[0]?.content[0]).toMatchObject({ type: 'image' })
    images.a = {}
    expect((await ask())[0]?.content).toEqual([notFound('one')])
  })

  it('may be deleted while they are read', async () => {
    const reader = { ...createRecord({}).readerOf('a'), existing: async (ids: string[]) => new Set(ids) }
    const deps = depsOf()
    const ask = () => loadImages(deps, reader, [messageOf('user', fileOf('one'))], never)
    expect((await ask())[0]?.content).toEqual([notFound('one')])
    expect(deps.images.get('a', '2048 image_file one')).toBeUndefined()
  })

  it('fail the call, to be tried again, when the record cannot be read, and end the loading of the others', async () => {
    const reader = { ...createRecord({}).readerOf('a'), existing: async (ids: string[]) => new Set(ids) }
    const read = () => Promise.reject(new Error('away'))
    const entered: AbortSignal[] = []
    const imageLoads = Object.assign(createImageLoads(), {
      // The first one begins; the others wait until they are told to stop.
      enter: (_: unknown, signal: AbortSignal) =>
        entered.push(signal) === 1 ? Promise.resolve(true) : new Promise<boolean>(() => undefined),
    })
    const files = ['1', '2', '3'].map(fileOf)
    const asked = loadImages({ ...depsOf(), imageLoads }, { ...reader, read }, [messageOf('user', ...files)], never)
    await expect(asked).rejects.toThrow('away')
    expect(entered.map(({ aborted }) => aborted)).toEqual([true, true, true])
  })

  it('fail the call for now while too many others wait to be loaded, and are loaded later', async () => {
    const one = await png(3, 2)
    const { readerOf } = createRecord({ a: { one } })
    const deps = depsOf()
    const ask = async (imageLoads: typeof deps.imageLoads) =>
      (await loadImages({ ...deps, imageLoads }, readerOf('a'), [messageOf('user', fileOf('one'))], never))[0]?.content
    const full = Object.assign(createImageLoads(), { enter: async () => false })
    const busy = { message: 'The service is loading too many images at the moment.', retryable: true }
    await expect(ask(full)).rejects.toMatchObject(busy)
    expect(await ask(deps.imageLoads)).toEqual([data(one)])
  })

  it('are in memory eight at a time in the process, seven of one organization', async () => {
    const open: (() => void)[] = []
    const most = new Map<string, number>()
    const now = new Map<string, number>()
    const count = (owner: string, by: number) => {
      now.set(owner, (now.get(owner) ?? 0) + by)
      most.set(owner, Math.max(most.get(owner) ?? 0, now.get(owner) ?? 0))
    }
    const bytes = await png(3, 2)
    const readerOf = (organizationId: string): ImageReader => ({
      organizationId,
      maxEdge: 2048,
      existing: async (ids) => new Set(ids),
      read: async () => {
        for (const owner of [organizationId, 'all']) count(owner, 1)
        await new Promise<void>((resolve) => open.push(resolve))
        for (const owner of [organizationId, 'all']) count(owner, -1)
        return bytes
      },
    })
    const deps = depsOf()
    const files = ['1', '2', '3', '4', '5', '6'].map(fileOf)
    let left = 12
    const calls = Array.from({ length: left }, async (_, call) => {
      const content = files.map((part) => (part.type === 'image_file' ? fileOf(`${call}/${part.image_id}`) : part))
      const loaded = await loadImages(deps, readerOf(call < 10 ? 'a' : 'b'), [messageOf('user', ...content)], never)
      left--
      return loaded[0]?.content
    })
    while (left > 0) {
      for (const release of open.splice(0)) release()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await Promise.all(calls)).toEqual(Array(12).fill(Array(6).fill(data(bytes))))
    expect([most.get('a'), most.get('all')]).toEqual([7, 8])
  })
})

it('scales images in base64 that are too large, once', async () => {
  const { readerOf } = createRecord({})
  const deps = depsOf()
  const given: ContentPart = { type: 'image', base64: (await png(3000, 3)).toString('base64'), media_type: 'image/png' }
  const ask = () => loadImages(deps, readerOf('a'), [messageOf('user', given)], never)
  const [first, second] = [await ask(), await ask()]
  expect(first[0]?.content[0]).toMatchObject({ type: 'image', media_type: 'image/png' })
  expect(first[0]?.content[0]).not.toEqual(given)
  expect(first[0]?.content).toEqual(second[0]?.content)
  const broken: ContentPart = { ...given, base64: `${given.base64?.slice(0, 60)}AAAA` }
  const [message] = await loadImages(deps, readerOf('a'), [messageOf('user', broken)], never)
  expect(message?.content).toEqual([text('[image not available: It could not be decoded.]')])
})
