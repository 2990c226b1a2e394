import { networkInterfaces } from 'node:os'
import { parseAllowedHost } from '../../../../lib/outgoing/allowed-host.ts'
import { type GuardOptions, refusalOf } from '../../../../lib/outgoing/guard.ts'

const OWN_PORT = 9300
const listed = (list: string): GuardOptions['allowedHosts'] =>
  list.split(',').flatMap((item) => parseAllowedHost(item) ?? [])

const isCalled = (guard: Partial<GuardOptions>, host: string, address: string, port: number): boolean =>
  refusalOf({ allowPrivateNetwork: false, ownPorts: new Set([OWN_PORT]), ...guard }, { host, address, port }) ===
  undefined

describe('a list of private hosts', () => {
  it.each<[list: string, host: string, address: string, port: number, called: boolean]>([
    ['ollama', 'ollama', '10.0.0.1', 80, true],
    ['ollama', 'ollama.', '10.0.0.1', 80, true],
    ['ollama', 'other', '10.0.0.1', 80, false],
    ['ollama:11434', 'ollama', '10.0.0.1', 11434, true],
    ['ollama:11434', 'ollama', '10.0.0.1', 80, false],
    ['bücher.example', 'xn--bcher-kva.example', '10.0.0.1', 80, true],
    ['10.0.0.1', 'any', '10.0.0.1', 80, true],
    ['10.0.0.1', 'any', '::ffff:10.0.0.1', 80, true],
    ['10.0.0.1', 'any', '10.0.0.2', 80, false],
    ['127.1:8080', 'localhost', '127.0.0.1', 8080, true],
    ['127.1:8080', 'localhost', '127.0.0.1', 8081, false],
    ['10.0.0.0/8', 'any', '10.255.0.1', 80, true],
    ['10.0.0.0/8', 'any', '192.168.0.1', 80, false],
    ['10.0.0.0/8:81', 'any', '10.255.0.1', 80, false],
    ['fd00::1', 'any', 'fd00::1', 80, true],
    ['[fd00::1]:81', 'any', 'fd00::1', 81, true],
    ['[fd00::1]:81', 'any', 'fd00::1', 80, false],
    ['fd00::/8', 'any', 'fd12::1', 80, true],
    ['[fd00::/8]:81', 'any', 'fd12::1', 80, false],
    ['a,b', 'b', '10.0.0.1', 80, true],
    ['0.0.0.0/0', 'any', '127.0.0.1', OWN_PORT, false],
    ['169.254.0.0/16', 'any', '169.254.169.254', 80, false],
  ])('of %s: %s at %s port %i is called: %s', (list, host, address, port, called) => {
    expect(isCalled({ allowedHosts: listed(list) }, host, address, port)).toBe(called)
  })

  it.each(['', 'a b', 'a/b', 'http://a', 'a:', 'a:0', 'a:65536', '10.0.0.0/33', 'fd00::/129', 'user@a', '[a', '::1::'])(
    'has no entry such as "%s"',
    (entry) => {
      expect(parseAllowedHost(entry)).toBeUndefined()
    },
  )
})

describe('whatever is allowed', () => {
  const open = { allowPrivateNetwork: true }

  it.each([
    ...['169.254.169.254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '169.254.170.2', 'fe80::a9fe:a9fe'],
    ...['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '192.0.0.192', '168.63.129.16'],
  ])('the metadata service of a cloud at %s is never called', (address) => {
    expect(refusalOf(open, { host: 'any', address, port: 80 })?.message).toMatch(/^any is .* metadata service/)
  })

  it('the service itself is never called, by any address of its machine', () => {
    const addresses = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? [])
    for (const address of [...addresses, '127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1']) {
      expect([address, isCalled(open, 'any', address, OWN_PORT)]).toEqual([address, false])
    }
    expect(isCalled(open, 'any', '127.0.0.1', 9301)).toBe(true)
    expect(isCalled(open, 'any', '10.99.98.97', OWN_PORT)).toBe(true)
  })
})
