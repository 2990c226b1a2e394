import { describeAddresses } from '../../../dev/addresses.ts'

describe('the addresses that npm start prints', () => {
  it.each([
    ['', '/v1'],
    ['/agents', '/agents/v1'],
    ['/service/one/', '/service/one/v1'],
  ])('are where the API is with API_PREFIX "%s"', (prefix, path) => {
    const text = describeAddresses({ api: 'http://127.0.0.1:9300', prefix })
    const addresses = [...text.matchAll(/http:\/\/127\.0\.0\.1:9300(\S*?\/v1)/g)].map(([, found]) => found)
    expect(addresses).toEqual(Array(4).fill(path))
    expect(text).toContain('http://127.0.0.1:9300/docs')
  })
})
