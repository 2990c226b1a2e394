import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import type { Logger } from 'pino'
import { createLimit } from '../../../api/auth/rate-limit.ts'
import type { Deps } from '../../../domain/deps.ts'

/** Returns what is logged for requests with these X-Forwarded-For, at this number of TRUSTED_PROXIES. */
async function warningsFor(trusted: number, forwarded: string[]): Promise<string[]> {
  const warnings: string[] = []
  // Redis is away, so the process counts for itself.
  const redis = { client: { status: 'end' } } as unknown as Deps['redis']
  const log = { warn: (text: string) => warnings.push(text) } as unknown as Logger
  const limit = createLimit({ redis, log }, 'login', 100)
  const app = new Koa({ proxy: trusted > 0, maxIpsCount: trusted }).use(async (ctx) => {
    await limit(ctx)
    ctx.body = ctx.ip
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (const value of forwarded) {
    const headers: Record<string, string> = value === '' ? {} : { 'X-Forwarded-For': value }
    expect((await fetch(`http://127.0.0.1:${port}`, { headers })).status).toBe(200)
  }
  server.close()
  return warnings
}

describe('the log', () => {
  it.each([
    [0, ['']],
    [1, ['', '203.0.113.9', '10.0.0.1, 203.0.113.9']],
    [2, ['203.0.113.9, 192.0.2.1']],
  ])('does not mention %i proxies that are in front', async (trusted, forwarded) => {
    expect(await warningsFor(trusted, forwarded)).toEqual([])
  })

  it('says once that a proxy is in front, but is not trusted', async () => {
    const warnings = await warningsFor(0, ['203.0.113.9', '203.0.113.9'])
    expect(warnings).toEqual([expect.stringContaining('TRUSTED_PROXIES is 0')])
  })

  it('says once that more proxies are trusted than are in front', async () => {
    const warnings = await warningsFor(2, ['203.0.113.9', '203.0.113.9'])
    expect(warnings).toEqual([expect.stringContaining('1 of 2 TRUSTED_PROXIES')])
  })
})
