import { withService } from '../support/service.ts'
import { newOrganization } from '../support/shared/service.ts'

/** Returns the service's own address, as the module computes it from the address that it was loaded from. */
const baseOf = (url: string): string => new URL('.', url).href.replace(/\/$/, '')

/** As of a browser that has the module. Without it, fetch adds `no-cache`. */
const KEPT = { 'Cache-Control': 'max-age=0' }

describe('GET /embed.js', () => {
  let url: string
  beforeAll(async () => {
    url = `${(await newOrganization()).url}/embed.js`
  })

  it('is a module that pages of all origins may load', async () => {
    const answer = await fetch(url, { headers: { Origin: 'https://shop.example' } })
    expect(answer.status).toBe(200)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'cache-control': 'no-cache',
      'content-type': 'text/javascript; charset=utf-8',
      'cross-origin-resource-policy': 'cross-origin',
      'x-content-type-options': 'nosniff',
    })
    expect(await answer.text()).toContain('agent-chat')
  })

  it('is compressed, and sent again only after it has changed', async () => {
    const plain = await (await fetch(url, { headers: { 'Accept-Encoding': 'identity' } })).text()
    const etags = await Promise.all(
      ['br', 'gzip'].map(async (encoding) => {
        const answer = await fetch(url, { headers: { 'Accept-Encoding': encoding } })
        expect(answer.headers.get('content-encoding')).toBe(encoding)
        expect(answer.headers.get('vary')).toMatch(/Accept-Encoding/i)
        // fetch has decoded it.
        expect(await answer.text()).toBe(plain)
        const etag = answer.headers.get('etag') ?? ''
        const again = await fetch(url, { headers: { ...KEPT, 'Accept-Encoding': encoding, 'If-None-Match': etag } })
        expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
        expect(again.headers.get('access-control-allow-origin')).toBe('*')
        return etag
      }),
    )
    expect(new Set(etags).size).toBe(1)
    expect((await fetch(url, { headers: { ...KEPT, 'If-None-Match': 'W/"other"' } })).status).toBe(200)
  })

  it('is beside the API if that has a prefix', async () => {
    const environment = { API_PREFIX: '/my/agents', CORS_ALLOWED_ORIGINS: 'https://shop.example' }
    await withService({ worker: false, environment }, async (service) => {
      const answer = await fetch(`${service.url}/embed.js`, { headers: { Origin: 'https://shop.example' } })
      expect([answer.status, answer.url]).toEqual([200, `${service.url}/my/agents/embed.js`])
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
      expect((await fetch(`${baseOf(answer.url)}/v1/auth/config`)).status).toBe(200)
      const redirect = await fetch(`${service.url}/embed.js`, { redirect: 'manual' })
      expect(redirect.headers.get('access-control-allow-origin')).toBe('*')
      await redirect.body?.cancel()
    })
  })

  it('is absent without the face', async () => {
    await withService({ worker: false, environment: { FACES: 'ai-sdk' } }, async (service) => {
      expect((await fetch(`${service.url}/embed.js`)).status).toBe(404)
    })
  })
})
