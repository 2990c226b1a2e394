import type { LookupAddress } from 'node:dns'
import { parseAllowedHost } from '../../../../lib/outgoing/allowed-host.ts'
import { checkUrl } from '../../../../lib/outgoing/check-url.ts'
import type { GuardOptions } from '../../../../lib/outgoing/guard.ts'
import { createGuardedFetch } from '../../../../lib/outgoing/guarded-fetch.ts'
import { OutgoingError } from '../../../../lib/outgoing/outgoing-error.ts'
import { startWebServer } from './web-server.ts'

const v4 = (address: string): LookupAddress => ({ address, family: 4 })
const NAMES: Record<string, LookupAddress[]> = {
  'inside.example': [v4('10.0.0.1'), v4('192.168.0.1')],
  'both.example': [v4('10.0.0.1'), v4('93.184.215.14')],
  'outside.example': [v4('93.184.215.14')],
}
const resolve = async (host: string) => NAMES[host] ?? Promise.reject(new Error('There is no such name.'))

const check = (url: string, guard: Partial<GuardOptions>): Promise<string> =>
  checkUrl({ allowPrivateNetwork: false, resolve, ...guard }, url).then(
    () => 'accepted',
    (error) => (error instanceof OutgoingError ? error.reason : String(error)),
  )

it.each([
  ['https://outside.example/v1', 'accepted'],
  ['http://outside.example:8080', 'accepted'],
  ['http://both.example/', 'accepted'],
  ['http://no.example/', 'accepted'],
  ['https://93.184.215.14/', 'accepted'],
  ['http://inside.example/', 'private_address'],
  ['http://127.0.0.1/', 'private_address'],
  ['http://2130706433/', 'private_address'],
  ['http://[::ffff:10.0.0.1]/', 'private_address'],
  ['http://[fd00::1]/', 'private_address'],
  ['http://localhost:11434/v1', 'private_address'],
  ['http://LOCALHOST./', 'private_address'],
  ['http://a.localhost/', 'private_address'],
  ['http://localhost.localdomain/', 'private_address'],
  ['http://ip6-localhost/', 'private_address'],
  ['', 'invalid_url'],
  ['outside.example/v1', 'invalid_url'],
  ['ftp://outside.example/', 'invalid_url'],
  ['https://me:secret@outside.example/', 'invalid_url'],
])('%s is %s', async (url, expected) => {
  expect(await check(url, {})).toBe(expected)
  expect(await check(url, { allowPrivateNetwork: true })).toBe(expected === 'invalid_url' ? expected : 'accepted')
})

it.each([
  ['http://localhost:8080/', 'accepted'],
  ['http://127.0.0.1:8080/', 'accepted'],
  ['http://127.0.0.1:8081/', 'private_address'],
  ['http://inside.example/', 'accepted'],
  ['http://169.254.169.254/', 'private_address'],
  ['http://metadata.google.internal/', 'private_address'],
  ['http://localhost:9300/', 'private_address'],
])('where some private hosts are allowed, %s is %s', async (url, expected) => {
  const list = ['127.0.0.1:8080', '127.0.0.1:9300', '192.168.0.0/24', '169.254.169.254', 'metadata.google.internal']
  const allowedHosts = list.flatMap((item) => parseAllowedHost(item) ?? [])
  expect(await check(url, { allowedHosts, ownPorts: new Set([9300]) })).toBe(expected)
})

it('accepts a name that does not resolve in time', async () => {
  const { setTimeout } = globalThis
  const timer = jest
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation((run, ms, ...rest) => setTimeout(run, ms === 2000 ? 0 : ms, ...rest))
  const guard = { allowPrivateNetwork: false, resolve: () => new Promise<never>(() => {}) }
  await checkUrl(guard, 'http://slow.example/')
  timer.mockRestore()
})

it('does not spare a name from the check of each connection', async () => {
  const server = await startWebServer((_, response) => response.end())
  const answers = [v4('93.184.215.14'), v4('127.0.0.1')]
  const guard = { allowPrivateNetwork: false, resolve: async () => answers.splice(0, 1) }
  const url = `http://rebind.example:${server.port}/`
  await checkUrl(guard, url)
  const { fetch, close } = createGuardedFetch({
    ...guard,
    headersTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    maxBytes: 1000,
  })
  await expect(fetch(url)).rejects.toMatchObject({ reason: 'private_address' })
  await close()
  await server.stop()
  expect([answers, server.requests]).toEqual([[], []])
})
