import { toId } from '../../domain/kit/ids.ts'
import { workflowEnd } from '../support/cancelling.ts'
import { countOf } from '../support/counts.ts'
import {
  call,
  createScriptedSession,
  createSession,
  type Json,
  modelId,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { killProcesses, startWorkerProcess } from '../support/process.ts'
import { answerOf, expectSoundRecord, textOf, turnOf, turnsOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { cancel, createBusySession, listTurns, MUTE } from '../support/turns.ts'

const TEXTS = Array.from({ length: 20 }, (_, index) => `message number ${index}`)

afterAll(killProcesses)

async function postAtOnce(url: string, id: string, texts = TEXTS): Promise<void> {
  const answers = await Promise.all(
    texts.map((text) => call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage(text))),
  )
  expect(answers.map(({ status }) => status)).toEqual(texts.map(() => 201))
}

/** Expects that every message has its own turn, in order, with the conversation up to that message. */
function expectAnsweredInOrder(events: Json[], texts = TEXTS): void {
  expectSoundRecord(events)
  const inputs = events.filter((event) => event.type === 'input.message').map((event) => textOf(event.data.message))
  expect([...inputs].sort()).toEqual([...texts].sort())
  expect(turnsOf(events).map((turnId) => answerOf(events, turnId))).toEqual(inputs)
  expect(events.filter((event) => event.type === 'turn.started').map(turnOf)).toEqual(turnsOf(events))
  const calls = events.filter((event) => event.type === 'llm.generation')
  const conversation = inputs.flatMap((text) => [text, text])
  calls.forEach((generation, index) => {
    expect(generation.data.messages.map(textOf)).toEqual(conversation.slice(0, 2 * index + 1))
  })
  // A first turn may be over before the other messages come: a session idles only when none waits.
  const afterIdling = events.filter((_, index) => events[index - 1]?.type === 'session.idled')
  expect(afterIdling.filter(({ type }) => type !== 'input.message')).toEqual([])
  expect(events.at(-1).type).toBe('session.idled')
}

/** Collects the turns that are started from now on. */
function watchStarts({ platform: { deps } }: TestService): string[] {
  const started: string[] = []
  const { startTurn } = deps.workflows
  deps.workflows.startTurn = (turn, owner) => {
    started.push(toId('turn', turn.turnId))
    return startTurn(turn, owner)
  }
  return started
}

describe('messages that reach a session at once', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startService()
  })
  afterAll(() => service.stop())

  it('each get a turn and an answer, one after the other, and the session idles once at the end', async () => {
    const { url } = service
    const id = await createSession(url, { default_model_id: await modelId(url, 'llmsim-echo') })
    await postAtOnce(url, id)
    expectAnsweredInOrder(await waitUntilIdle(url, id))
  })

  it('continue at once when the running turn is cancelled by id', async () => {
    const { url } = service
    const { id, turns } = await createBusySession(url, 2, [MUTE, { text: 'second' }, { text: 'third' }])
    const [running = '', ...others] = turns
    const started = watchStarts(service)
    expect((await cancel(url, id, { turn_id: running })).body.status).toBe('cancelled')
    // The next turn starts once it has begun, without waiting for the sweep, which comes after two seconds.
    await waitFor(async () => started.includes(others[0] ?? ''), 'the next turn to start', 1500)
    const events = await waitUntilIdle(url, id)
    expectSoundRecord(events)
    expect(others.map((turnId) => answerOf(events, turnId))).toEqual(['second', 'third'])
    expect(events.filter((event) => event.type === 'session.idled')).toHaveLength(1)
    const [cancelled] = await listTurns(url, id)
    expect(cancelled).toMatchObject({ id: running, status: 'cancelled' })
    expect(await workflowEnd(service, running)).toMatch(/^(CANCELLED|COMPLETED)$/)
  })

  it('never run two turns at once, even if the session was idle', async () => {
    const { url } = service
    const step = { text: 'the answer', delay_ms: 150 }
    const sessions = await Promise.all(
      Array.from({ length: countOf('sessionsAtOnce') }, () => createScriptedSession(url, [step, step, step])),
    )
    for (const id of sessions) await postAtOnce(url, id, TEXTS.slice(0, 3))
    for (const id of sessions) {
      const events = await waitUntilIdle(url, id)
      expectSoundRecord(events)
      expect(turnsOf(events).map((turnId) => answerOf(events, turnId))).toEqual(Array(3).fill('the answer'))
    }
  })

  it('are each answered when they arrive while turns end', async () => {
    const { url } = service
    const id = await createSession(url, { default_model_id: await modelId(url, 'llmsim-echo') })
    const stream = await openStream(url, `/v1/sessions/${id}/sse`)
    for (const text of TEXTS) {
      // Post a message at each end of a turn, when the session is busy, idle, or between the two.
      await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage(text))
      await stream.until((frame) => frame.event === 'reason.completed' && frame.data.data.text_preview === text)
    }
    const answered = () => stream.events().filter((event) => event.type === 'turn.completed').length === TEXTS.length
    await stream.until(answered)
    await stream.until((frame) => frame.event === 'session.idled' && answered())
    stream.close()
    const events = await waitUntilIdle(url, id)
    expectSoundRecord(events)
    expect(turnsOf(events).map((turnId) => answerOf(events, turnId))).toEqual(TEXTS)
  })
})

describe('a queue of messages', () => {
  it('is completed when the worker is killed in the middle', async () => {
    const service = await startService({ worker: false })
    try {
      const { url } = service
      const id = await createSession(url, { default_model_id: await modelId(url, 'llmsim-echo') })
      await postAtOnce(url, id)
      const worker = await startWorkerProcess(service)
      const stream = await openStream(url, `/v1/sessions/${id}/sse`)
      await stream.until(() => stream.events().filter((event) => event.type === 'turn.completed').length >= 2)
      await worker.kill()
      await service.startWorker()
      const events = await waitUntilIdle(url, id)
      expectAnsweredInOrder(events)
      await stream.until((frame) => frame.event === 'session.idled')
      stream.close()
      expect(stream.events()).toEqual(events)
    } finally {
      await killProcesses()
      await service.stop()
    }
  })

  it('waits for a worker if there is none, and is then completed', async () => {
    const service = await startService({ worker: false })
    try {
      const { url } = service
      const id = await createSession(url, { default_model_id: await modelId(url, 'llmsim-echo') })
      await postAtOnce(url, id)
      const { body } = await call(url, 'GET', `/v1/sessions/${id}/turns`)
      expect(body.data.map((turn: Json) => turn.status)).toEqual(TEXTS.map(() => 'queued'))
      await service.startWorker()
      expectAnsweredInOrder(await waitUntilIdle(url, id))
      await waitFor(
        async () => (await call(url, 'GET', `/v1/sessions/${id}`)).body.status === 'idle',
        'the session to be idle',
      )
    } finally {
      await service.stop()
    }
  })
})
