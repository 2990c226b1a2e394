import { addressOf, isPublicAddress } from '../../../../lib/outgoing/address.ts'

describe('addresses that may be called', () => {
  it.each(['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '2a00:1450:4001:800::200e', '::ffff:8.8.8.8'])(
    '%s',
    (address) => {
      expect(isPublicAddress(address)).toBe(true)
    },
  )
})

describe('addresses that may not be called', () => {
  it.each<[string, string[]]>([
    ['this machine', ['127.0.0.1', '127.255.255.254', '0.0.0.0', '::1', '::']],
    [
      'private networks',
      ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1', 'fec0::1'],
    ],
    ['the link, where clouds keep their metadata', ['169.254.169.254', 'fe80::1']],
    ['carriers', ['100.64.0.1', '100.127.255.255']],
    ['many at once', ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1']],
    [
      'nobody',
      ['192.0.2.1', '198.51.100.1', '203.0.113.1', '198.18.0.1', '240.0.0.1', '2001:db8::1', '100::1', '4000::1'],
    ],
    [
      'IPv4 addresses within IPv6',
      [
        '::ffff:127.0.0.1',
        '::ffff:7f00:1',
        '::127.0.0.1',
        '::7f00:1',
        '64:ff9b::7f00:1',
        '64:ff9b:1::7f00:1',
        '2002:7f00:1::',
        '2001::1',
      ],
    ],
    ['no address', ['', 'localhost', '127.0.0.1 ', 'example.com']],
  ])('%s', (_, addresses) => {
    for (const address of addresses) expect([address, isPublicAddress(address)]).toEqual([address, false])
  })
})

it.each([
  ['http://127.1/', '127.0.0.1'],
  ['http://2130706433/', '127.0.0.1'],
  ['http://0x7f000001/', '127.0.0.1'],
  ['http://0177.0.0.1/', '127.0.0.1'],
  ['http://127.0.0.1./', '127.0.0.1'],
  ['http://[::1]:80/', '::1'],
  ['http://localhost/', undefined],
  ['http://127.0.0.1.example.com/', undefined],
])('the address in %s is %s', (url, address) => {
  expect(addressOf(new URL(url))).toBe(address)
})
