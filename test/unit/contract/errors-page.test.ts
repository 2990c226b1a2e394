import { readFileSync } from 'node:fs'
import { DisconnectReason, describeError, ErrorCode, ToolCallStatus, TurnErrorCode } from '../../../contract/errors.ts'

const page = readFileSync('docs/errors.md', 'utf8')

/** Returns the rows of the table under a heading. */
function rowsUnder(heading: string): string[][] {
  const text = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = [...text.matchAll(/^\| `(\w+)` +\|(.*)\|$/gm)]
  return rows.map(([, code = '', rest = '']) => [code, ...rest.split('|').map((cell) => cell.trim())])
}

describe('docs/errors.md', () => {
  it.each([
    ['Codes of answers', ErrorCode],
    ['Codes of failed turns', TurnErrorCode],
    ['Statuses of tool calls', ToolCallStatus],
    ['Reasons of `disconnecting`', DisconnectReason],
  ])('lists exactly the closed list: %s', (heading, { options }) => {
    expect(rowsUnder(heading).map(([code]) => code)).toEqual(options)
  })

  it('names each status with the code that an error of it has without one of its own', () => {
    const rows = rowsUnder('Codes of answers').map(([code, statuses = '']) => ({
      code,
      statuses: statuses.split(', '),
    }))
    for (const status of rows.flatMap(({ statuses }) => statuses)) {
      const { code } = describeError(Number(status), 'No.')
      expect([status, rows.find((row) => row.code === code)?.statuses]).toEqual([
        status,
        expect.arrayContaining([status]),
      ])
    }
  })
})
