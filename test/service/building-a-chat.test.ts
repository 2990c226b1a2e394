import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { call, listEvents, waitUntilIdle } from '../support/http.ts'
import { startProxy } from '../support/proxy.ts'
import { whyNoPython } from '../support/python.ts'
import { expectSoundRecord, typesOf } from '../support/record.ts'
import { sharedService } from '../support/shared/service.ts'

const run = promisify(execFile)
const LIMIT_MS = 60_000

const page = await readFile('docs/building-a-chat.md', 'utf8')
const codeOf = (language: string): string =>
  [...page.matchAll(new RegExp(`^(\`{3,})${language}\\n(.*?)^\\1$`, 'gms'))].map(([, , code]) => code).join('\n')

const reason = whyNoPython()
if (reason !== undefined) process.stdout.write(`without CI the chat in Python is not tried: ${reason}\n`)

/** Says at the end which session the program has made. */
const TELL_SESSION = '\nprint(session)\n'

// In CI it fails instead, because nobody checks what was skipped there.
;(reason === undefined || process.env.CI ? it : it.skip)(
  'the chat in Python gets its answer, and calls its tool once, on a connection that breaks again and again',
  async () => {
    const { host } = new URL((await sharedService('open')).url)
    let connections = 0
    // The agent and the session are made on connections that last.
    const proxy = await startProxy(host, () => (++connections <= 2 ? 1_000_000 : 600 + 700 * (connections % 4)))
    try {
      const code = codeOf('python').replace('localhost:9300', proxy.address) + TELL_SESSION
      const { stdout } = await run('python3', ['-c', code], { timeout: LIMIT_MS })
      const [session = '', answer] = stdout.trimEnd().split('\n').reverse()
      expect(answer).toBe('Then blue it is.')
      expect(connections).toBeGreaterThan(8)
      const url = `http://${host}`
      const events = await waitUntilIdle(url, session)
      expectSoundRecord(events)
      expect(await listEvents(url, session)).toEqual(events)
      for (const type of ['input.message', 'tool.call_requested', 'tool.completed', 'turn.completed'])
        expect(typesOf(events).filter((one) => one === type)).toEqual([type])
      expect((await call(url, 'GET', `/v1/sessions/${session}`)).body.status).toBe('idle')
    } finally {
      await proxy.close()
    }
  },
  LIMIT_MS,
)
