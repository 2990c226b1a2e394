import { bodyOf } from '../../../domain/tools/skills/body.ts'

describe('the body of a SKILL.md', () => {
  it.each<[what: string, text: string, body: string]>([
    ['is below the front matter', '---\nname: a\n---\nBody\n', 'Body\n'],
    ['keeps its own lines', '---\nname: a\n---\n\n---\nBody\n---\n', '\n---\nBody\n---\n'],
    ['is found behind a BOM and with CRLF', '\ufeff---\r\nname: a\r\n---\r\nBody\r\n', 'Body\r\n'],
    ['is found where fences end with spaces', '---  \nname: a\n--- \t\nBody', 'Body'],
    ['may be empty', '---\nname: a\n---', ''],
    ['is not ended by what only looks like a fence', '---\na: "\n --- \n---- \n--- x"\n---\nBody', 'Body'],
    ['is all of a text without front matter', '# Title\n---\nBody', '# Title\n---\nBody'],
    ['is all of a text whose front matter does not end', '---\nname: a\nBody', '---\nname: a\nBody'],
    ['of nothing is nothing', '', ''],
  ])('%s', (_what, text, body) => expect(bodyOf(text)).toBe(body))

  it('is found in a long text at once', () => {
    const long = '---x\n'.repeat(200_000)
    expect(bodyOf(`---\n${long}---\nBody`)).toBe('Body')
  })
})
