import { warnRarely } from '../../../lib/warn-rarely.ts'

function createLog() {
  const lines: [fields: object, message: string][] = []
  return { lines, warn: (fields: object, message: string) => void lines.push([fields, message]) }
}

let now = 0
beforeEach(() => {
  jest.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  jest.restoreAllMocks()
})

describe('a repeated warning', () => {
  it('is logged once in ten seconds, and counted meanwhile', () => {
    const log = createLog()
    for (let second = 0; second < 25; second++) {
      warnRarely(log, { err: 'gone', second }, 'away')
      now += 1000
    }
    expect(log.lines).toEqual([
      [{ err: 'gone', second: 0 }, 'away'],
      [{ err: 'gone', second: 10, repeated: 9 }, 'away'],
      [{ err: 'gone', second: 20, repeated: 9 }, 'away'],
    ])
  })

  it("leaves out neither another message nor another log's", () => {
    const logs = [createLog(), createLog()]
    for (const log of logs) for (const message of ['away', 'broken', 'away']) warnRarely(log, { err: 'gone' }, message)
    expect(logs.map(({ lines }) => lines.map(([, message]) => message))).toEqual([
      ['away', 'broken'],
      ['away', 'broken'],
    ])
  })

  it('has a reason of one short line', () => {
    const log = createLog()
    warnRarely(log, { err: `\nInvalid call:\n\n  ${'x'.repeat(1000)}` }, 'away')
    const error = new Error('as it is')
    warnRarely(log, { err: error }, 'broken')
    expect(log.lines).toEqual([
      [{ err: `Invalid call: ${'x'.repeat(286)}` }, 'away'],
      [{ err: error }, 'broken'],
    ])
  })
})
