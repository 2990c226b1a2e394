import sharp from 'sharp'
import { call, createSession, type Json, modelId, type Target } from '../support/http.ts'
import { formOf } from '../support/pictures.ts'
import { picture } from '../support/pictures-by-sharp.ts'
import { anthropicMessages } from '../support/providers/anthropic-messages.ts'
import { startProvider } from '../support/providers/scripted-server.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
/** Two organizations, and a session of the first whose model repeats its message. */
let api: Target
let other: Target
let session: string
beforeAll(async () => {
  // Needs addresses of this machine.
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  api = { url: service.url, headers: {} }
  const { body } = await call(api, 'POST', '/v1/orgs', { name: 'Other' })
  other = { url: service.url, headers: { 'X-Org-Id': body.id } }
  session = await createSession(api, { default_model_id: await modelId(api, 'llmsim-echo') })
})
afterAll(() => service.stop())

async function upload(target: Target, bytes: Buffer): Promise<string> {
  const { status, body } = await call(target, 'POST', '/v1/images', formOf(bytes))
  expect(status).toBe(201)
  return body.id
}
const fileOf = (image_id: string) => ({ type: 'image_file', image_id })

/** Posts a message and returns what the model answered. */
async function ask(id: string, ...parts: object[]): Promise<string> {
  const content = [{ type: 'text', text: 'Look' }, ...parts]
  const { body } = await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, { message: { content } })
  expect(body.turn).toMatchObject({ status: 'completed' })
  return body.output.content[0].text
}
const messagesOf = async (id: string): Promise<Json[]> =>
  (await call(api, 'GET', `/v1/sessions/${id}/messages`)).body.data

describe('an uploaded image in a message', () => {
  it('is given to the model, whichever form its id has, while the message keeps what was sent', async () => {
    const id = await upload(api, await picture(3, 2).png().toBuffer())
    const short = `img_${id.replaceAll('-', '')}`
    expect(await ask(session, fileOf(id), fileOf(short))).toBe('Look\n[image image/png 3x2]\n[image image/png 3x2]')
    const message = (await messagesOf(session)).findLast(({ role }) => role === 'user')
    expect(message.content.slice(1)).toEqual([fileOf(id), fileOf(id)])
  })

  it('is scaled down and turned upright', async () => {
    const photo = await picture(4000, 1000).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    expect(await ask(session, fileOf(await upload(api, photo)))).toBe('Look\n[image image/jpeg 512x2048]')
  })

  it('is missing from the next call once it is deleted', async () => {
    const id = await upload(api, await picture(5, 4).webp().toBuffer())
    expect(await ask(session, fileOf(id))).toBe('Look\n[image image/webp 5x4]')
    expect((await call(api, 'DELETE', `/v1/images/${id}`)).status).toBe(204)
    expect(await ask(session, fileOf(id))).toBe(`Look\n[image not found: ${id}]`)
  })

  it("is missing when it is another organization's, just as when nothing has its id", async () => {
    const theirs = await upload(other, await picture(3, 2).png().toBuffer())
    const nobodys = '0193aaaa-bbbb-7ccc-8ddd-0123456789ab'
    const texts = [await ask(session, fileOf(theirs)), await ask(session, fileOf(nobodys))]
    expect(texts).toEqual([`Look\n[image not found: ${theirs}]`, `Look\n[image not found: ${nobodys}]`])
  })
})

it('an image in base64 that cannot be decoded leaves the turn as it is', async () => {
  const bytes = await picture(3000, 3).png().toBuffer()
  const base64 = bytes.subarray(0, bytes.length / 2).toString('base64')
  const answer = await ask(session, { type: 'image', base64, media_type: 'image/png' })
  expect(answer).toBe('Look\n[image not available: It could not be decoded.]')
})

it('a provider gets the very bytes of a small image, and a large one as large as its models take', async () => {
  const fake = await startProvider(anthropicMessages, [{ blocks: [{ type: 'text', deltas: ['I see.'] }] }])
  try {
    const provider = { name: 'Fake', provider_type: 'anthropic', base_url: fake.baseUrl, api_key: 'sk-fake-0123456789' }
    const { body } = await call(api, 'POST', '/v1/llm-providers', provider)
    const model = { model_id: 'claude-sonnet-4-5', display_name: 'Fake' }
    const { body: added } = await call(api, 'POST', `/v1/llm-providers/${body.id}/models`, model)
    const id = await createSession(api, { default_model_id: added.id })
    const small = await picture(30, 20).jpeg().toBuffer()
    const large = await picture(3136, 200).png().toBuffer()
    const files = [fileOf(await upload(api, small)), fileOf(await upload(api, large))]
    expect(await ask(id, ...files)).toBe('I see.')
    const [first, second] = (fake.requests[0]?.body.messages[0]?.content ?? []).flatMap(
      ({ source }: Json) => source ?? [],
    )
    expect(first).toEqual({ type: 'base64', media_type: 'image/jpeg', data: small.toString('base64') })
    const scaled = await sharp(Buffer.from(second.data, 'base64')).metadata()
    expect(scaled).toMatchObject({ format: 'png', width: 1568, height: 100 })
  } finally {
    await fake.close()
  }
})
