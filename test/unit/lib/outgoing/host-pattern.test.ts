import { matchesHost, parseHostPattern } from '../../../../lib/outgoing/host-pattern.ts'

describe('a pattern of hosts', () => {
  it.each([
    ['API.Example.com', 'api.example.com'],
    ['*.example.com', '*.example.com'],
    ['example.com:08443', 'example.com:8443'],
    ['*.example.com:443', '*.example.com:443'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['[2001:DB8::1]:8080', '[2001:db8::1]:8080'],
    ['0x7f.1', '127.0.0.1'],
    ['localhost:3001', 'localhost:3001'],
  ])('is read: %s', (text, pattern) => {
    expect(parseHostPattern(text)).toBe(pattern)
    // Stored patterns are read again.
    expect(parseHostPattern(pattern)).toBe(pattern)
  })

  it.each([
    ['', 'nothing'],
    ['*', 'all hosts'],
    ['*.com', 'a top-level domain'],
    ['*.127.0.0.1', 'names below an address'],
    ['a.*.example.com', 'a wildcard inside'],
    ['**.example.com', 'two wildcards'],
    ['https://example.com', 'a scheme'],
    ['example.com/path', 'a path'],
    ['example.com?a', 'a query'],
    ['example.com#a', 'a fragment'],
    ['me@example.com', 'a user'],
    ['example.com\\.evil.example', 'a backslash'],
    ['example.com evil.example', 'a space'],
    ['example.com:0', 'no port'],
    ['example.com:65536', 'a port too high'],
    ['example.com:', 'an empty port'],
    ['exa%00mple.com', 'a NUL'],
    ['2001:db8::1', 'an address without brackets'],
  ])('is refused: %s, which has %s', (text) => {
    expect(parseHostPattern(text)).toBeUndefined()
  })

  it.each([
    ['api.example.com', 'https://api.example.com/a', true],
    ['api.example.com', 'https://API.example.com:443', true],
    ['api.example.com', 'http://api.example.com', false],
    ['api.example.com', 'https://api.example.com:8443', false],
    ['api.example.com', 'https://example.com', false],
    ['api.example.com', 'https://api.example.com.evil.example', false],
    ['api.example.com', 'https://api.example.com./', false],
    ['api.example.com', 'https://api.example.com@evil.example', false],
    ['*.example.com', 'https://a.b.example.com', true],
    ['*.example.com', 'https://example.com', false],
    ['*.example.com', 'https://evilexample.com', false],
    ['example.com:8443', 'https://example.com:8443', true],
    ['example.com:8443', 'http://example.com:8443', true],
    ['example.com:8443', 'https://example.com', false],
    ['example.com:443', 'https://example.com', true],
    ['example.com:80', 'http://example.com', true],
    ['127.0.0.1:80', 'http://2130706433', true],
    ['[2001:db8::1]', 'https://[2001:db8:0::1]', true],
  ])('%s and %s: %s', (pattern, url, isCovered) => {
    expect(matchesHost(pattern, new URL(url))).toBe(isCovered)
  })
})
