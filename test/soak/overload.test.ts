import { createSession, waitUntilIdle } from '../support/http.ts'
import { killProcesses, startApiProcess } from '../support/process.ts'
import { type FakeOpenai, questionOf, startFakeOpenai } from '../support/providers/chat-completions.ts'
import { expectSoundRecord } from '../support/record.ts'
import { withService } from '../support/service.ts'
import { post } from '../support/turns.ts'

const TURNS = 200
const LIMIT_MS = 180_000

let provider: FakeOpenai
beforeAll(async () => {
  provider = await startFakeOpenai(() => ({ text: ['a ', 'b ', 'c ', 'd '], pauseMs: 1400 }))
})
afterAll(async () => {
  await killProcesses()
  await provider.close()
})

it(
  'asks once for each of as many slow turns as a process runs, though another process has nothing to do',
  async () => {
    const environment = { DEFAULT_OPENAI_API_KEY: 'sk-none', DEFAULT_OPENAI_BASE_URL: provider.baseUrl }
    await withService({ environment, worker: false }, async (service) => {
      const [busy, other] = await Promise.all([1, 2].map(() => startApiProcess(service, 'main.ts', environment)))
      if (busy === undefined || other === undefined) throw new Error('not started')
      const texts = Array.from({ length: TURNS }, (_, index) => `message ${index}`)
      const ids: string[] = []
      for (const _text of texts) ids.push(await createSession(other.url))
      await Promise.all(ids.map((id, index) => post(busy.url, id, texts[index])))
      for (const id of ids) expectSoundRecord(await waitUntilIdle(other.url, id))
      const asked = provider.requests.map(questionOf)
      const more = texts.filter((text) => asked.filter((one) => one === text).length !== 1)
      expect(more).toEqual([])
      await Promise.all([busy.kill(), other.kill()])
    })
  },
  LIMIT_MS,
)
