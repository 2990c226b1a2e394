import { call, createScriptedSession, createSession, textMessage, waitUntilIdle } from '../support/http.ts'
import { killProcesses, startApiProcess } from '../support/process.ts'
import { answerOf, expectSoundRecord, firstTurnTypes, turnsOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'

afterAll(killProcesses)

describe('several API processes', () => {
  let service: TestService
  let urls: string[]
  beforeAll(async () => {
    service = await startService()
    const [peer, child] = await Promise.all([service.startPeer(), startApiProcess(service)])
    urls = [service.url, peer.url, child.url]
  })
  afterAll(async () => {
    await killProcesses()
    await service.stop()
  })

  it('stream the same events of a message, whichever took it', async () => {
    for (const posted of urls) {
      const step = { text: 'one two three four five six', tokens_per_second: 20 }
      const id = await createScriptedSession(posted, [step])
      const streams = await Promise.all(urls.map((url) => openStream(url, `/v1/sessions/${id}/sse`)))
      expect((await call(posted, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))).status).toBe(201)
      const record = await waitUntilIdle(service.url, id)
      expectSoundRecord(record)
      for (const stream of streams) {
        await stream.until((frame) => frame.event === 'session.idled')
        stream.close()
        expect(stream.events()).toEqual(record)
      }
    }
  })

  it('understand the cursors of one another', async () => {
    const id = await createSession(service.url)
    await call(service.url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Hello'))
    const record = await waitUntilIdle(service.url, id)
    for (const url of urls) {
      const { body } = await call(url, 'GET', `/v1/sessions/${id}/events?since_id=${record[3].id}`)
      expect(body.data).toEqual(record.slice(4))
    }
  })

  it('keep concurrent messages to a session in one order', async () => {
    const id = await createSession(service.url, { default_model_id: ECHO })
    const texts = Array.from({ length: 9 }, (_, index) => `message ${index}`)
    const posts = texts.map((text, index) =>
      call(urls[index % urls.length] ?? '', 'POST', `/v1/sessions/${id}/messages`, textMessage(text)),
    )
    expect((await Promise.all(posts)).map(({ status }) => status)).toEqual(texts.map(() => 201))
    const record = await waitUntilIdle(service.url, id)
    expectSoundRecord(record)
    expect(turnsOf(record).map((turnId) => answerOf(record, turnId)?.slice(0, 7))).toEqual(texts.map(() => 'message'))
  })
})

/** Id of llmsim-echo. Catalog ids are the same in every installation. */
const ECHO = 'model_01933b5a000070008000000000000103'

describe('a service in one process that is killed right after it took a message', () => {
  it('answers the message once after a restart', async () => {
    const record = await startService({ worker: false })
    try {
      const first = await startApiProcess(record, 'main.ts')
      const id = await createSession(first.url)
      const { status } = await call(first.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
      await first.kill()
      expect(status).toBe(201)
      const second = await startApiProcess(record, 'main.ts')
      const events = await waitUntilIdle(second.url, id)
      expectSoundRecord(events)
      expect(turnsOf(events)).toHaveLength(1)
      const answers = typesOf(events).filter((type) => type === 'output.message.completed')
      expect(answers).toHaveLength(1)
      expect(new Set(typesOf(events))).toEqual(new Set(firstTurnTypes()))
    } finally {
      await killProcesses()
      await record.stop()
    }
  })
})
