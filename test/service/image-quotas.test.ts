import { deleteExpired } from '../../domain/upkeep/retention.ts'
import { type Answer, call, expectError } from '../support/http.ts'
import { formOf, PIXEL } from '../support/pictures.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  const environment = {
    IMAGE_MAX_BYTES: '100',
    IMAGE_MAX_COUNT: '3',
    IMAGE_MAX_TOTAL_BYTES: `${2 * PIXEL.length + 1}`,
  }
  service = await startService({ environment, worker: false })
})
afterAll(() => service.stop())
beforeEach(() => service.platform.deps.db.image.deleteMany())

const images = () => service.platform.deps.db.image
const upload = (bytes = PIXEL, headers = {}): Promise<Answer> =>
  call(service.url, 'POST', '/v1/images', formOf(bytes), headers)
const statusesOf = (answers: Answer[]) => answers.map(({ status }) => status).sort()
/** Inserts an image of the default organization that has no bytes. */
const insert = (fields: { sizeBytes?: number; completedAt?: Date; createdAt?: Date }) =>
  images().create({
    data: {
      id: crypto.randomUUID(),
      organizationId: '00000000-0000-0000-0000-000000000001',
      filename: 'a.png',
      contentType: 'image/png',
      ...fields,
    },
  })

describe("an organization's images", () => {
  it('are limited in number, also when they arrive together', async () => {
    await insert({ completedAt: new Date() })
    await insert({ completedAt: new Date() })
    const answers = await Promise.all(Array.from({ length: 4 }, () => upload()))
    expect(statusesOf(answers)).toEqual([201, 409, 409, 409])
    expectError(await upload(), 409, 'The organization has 3 images, which is the limit; delete one first')
    expect(await images().count()).toBe(3)
  })

  it('are limited in size together, also when they arrive together', async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => upload()))
    expect(statusesOf(answers)).toEqual([201, 201, 409, 409])
    const sentence = `The organization's images can take ${2 * PIXEL.length + 1} bytes together; delete some first`
    expectError(await upload(), 409, sentence)
    expect(await images().count()).toBe(2)
  })

  it('are repeated by their key when they are as many as can be', async () => {
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    const first = await upload(PIXEL, headers)
    for (const _ of [1, 2]) await insert({ completedAt: new Date() })
    expect(await upload(PIXEL, headers)).toMatchObject({ status: 201, body: first.body })
    expect((await upload(PIXEL, { 'Idempotency-Key': crypto.randomUUID() })).status).toBe(409)
    expect(await images().count()).toBe(3)
  })

  it('can be uploaded again with the key of a refused upload, once there is room', async () => {
    const { id } = await insert({ sizeBytes: 2 * PIXEL.length, completedAt: new Date() })
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    expect((await upload(PIXEL, headers)).status).toBe(409)
    await call(service.url, 'DELETE', `/v1/images/${id}`)
    expect((await upload(PIXEL, headers)).status).toBe(201)
  })

  it('are of the configured size', async () => {
    const padded = Buffer.concat([PIXEL, Buffer.alloc(101 - PIXEL.length)])
    expectError(await upload(padded), 400, 'file: must be at most 100 bytes')
    expect((await upload(padded.subarray(0, 100))).status).toBe(201)
  })

  it('are uploaded a hundred at once', async () => {
    const recent = await Promise.all(Array.from({ length: 100 }, () => insert({})))
    expectError(await upload(), 429, /uploads 100 images already/)
    await images().update({
      where: { id: recent[0]?.id ?? '' },
      data: { createdAt: new Date(Date.now() - 16 * 60_000) },
    })
    expect((await upload()).status).toBe(201)
  })
})

it('an upload that a killed process left is deleted after an hour, and no image is', async () => {
  const hours = (count: number) => new Date(Date.now() - count * 60 * 60_000)
  await insert({ createdAt: hours(1.1) })
  const kept = [await insert({ createdAt: hours(0.9) }), await insert({ createdAt: hours(9), completedAt: hours(9) })]
  await deleteExpired(service.platform.deps, new AbortController().signal)
  expect((await images().findMany()).map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort())
})
