import { z } from 'zod'
import { reply } from '../../../api/http/handle.ts'
import { openapiDocument } from '../../../api/http/openapi.ts'
import { defineEndpoint, type PlantedApp, plant } from '../../support/planted.ts'
import { exchange, head } from '../../support/raw.ts'

const base = { operationId: 'planted', method: 'GET', tag: 'files', access: 'public', summary: 'Planted' } as const
const Found = z.object({ folder: z.string(), path: z.string() })
const file = defineEndpoint({
  ...base,
  path: '/v1/folders/{folder}/fs/{path*}',
  params: z.object({ folder: z.string(), path: z.string().max(1000) }),
  responses: { 200: Found },
})
const grep = defineEndpoint({ ...base, path: '/v1/folders/{folder}/fs/_/grep', responses: { 204: null } })

let app: PlantedApp
beforeAll(async () => {
  app = await plant((handle) => {
    handle(grep, async () => reply(204, undefined))
    handle(file, async ({ params }) => reply(200, params))
  })
})
afterAll(() => app.close())

const get = (path: string) => exchange(app.url, head('GET', `/v1/folders/f%2F1/fs/${path}`))

describe('a path of several segments', () => {
  it.each([
    ['a.txt', 'a.txt'],
    ['a/b/c.txt', 'a/b/c.txt'],
    ['a%20b/%C3%A4%E2%82%AC.txt', 'a b/ä€.txt'],
    // Generated clients encode the path as one parameter.
    ['a%2Fb%2Fc.txt', 'a/b/c.txt'],
    // Decoded only once.
    ['100%2525', '100%25'],
    ['a//b/', 'a//b/'],
    // Left to the resource, which defines valid paths.
    ['../%2e%2e/etc/passwd', '../../etc/passwd'],
    ['a%5Cb;c=1&d+e', 'a\\b;c=1&d+e'],
    ['x/_/grep', 'x/_/grep'],
    ['', ''],
  ])('%s', async (sent, path) => {
    const { status, body } = await get(sent)
    expect([status, JSON.parse(body)]).toEqual([200, { folder: 'f/1', path }])
  })

  it.each([
    ['a/%zz', /percent-encoded UTF-8/],
    ['%', /percent-encoded UTF-8/],
    ['a/%ff', /percent-encoded UTF-8/],
    ['%E0%A4%A/b', /percent-encoded UTF-8/],
    ['%ED%A0%80', /percent-encoded UTF-8/],
    ['a/%00', /^path: must not contain a NUL/],
    ['x'.repeat(1001), /^path: must have at most/],
  ])('is refused: %s', async (sent, sentence) => {
    const { status, body } = await get(sent)
    expect(status).toBe(400)
    expect(JSON.parse(body).error).toMatch(sentence)
  })

  it('leaves the routes beside it alone', async () => {
    expect((await get('_/grep')).status).toBe(204)
    expect((await exchange(app.url, head('GET', '/v1/folders/f'))).status).toBe(404)
  })

  it('has to be registered after the routes that it would match', async () => {
    const wrong = plant((handle) => {
      handle(file, async ({ params }) => reply(200, params))
      handle(grep, async () => reply(204, undefined))
    })
    await expect(wrong).rejects.toThrow('/v1/folders/{folder}/fs/_/grep: is taken by /v1/folders/:folder/fs{/*path}')
  })

  it('is one parameter in the OpenAPI document', () => {
    const document = openapiDocument([file], { version: '1', prefix: '', isOpen: true })
    expect(Object.keys(document.paths)).toEqual(['/v1/folders/{folder}/fs/{path}'])
    expect(document.paths['/v1/folders/{folder}/fs/{path}']).toMatchObject({
      get: {
        operationId: 'planted',
        parameters: [
          { name: 'folder' },
          { name: 'path', in: 'path', description: expect.stringContaining('segments') },
        ],
      },
    })
  })
})
