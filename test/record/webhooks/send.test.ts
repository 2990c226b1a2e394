import type { ServerResponse } from 'node:http'
import { newUuid } from '../../../domain/kit/ids.ts'
import { encryptSecrets, newSecret } from '../../../domain/organization-events/webhooks/secrets.ts'
import { type Sending, send } from '../../../domain/organization-events/webhooks/send.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' }, worker: false })
})
afterAll(async () => {
  await service.stop()
  await receiver.close()
})

const answerStatus =
  (status: number, headers = {}) =>
  (response: ServerResponse) =>
    response.writeHead(status, headers).end('no')

describe('a request to a receiver', () => {
  const secrets = (id: string) => encryptSecrets(service.platform.deps, id, { current: newSecret() })
  /** For receivers that never end their answer. Others answer at once, which takes a while on a busy machine. */
  const SHORT_MS = 1000
  const sendTo = (url: string, timeoutMs = 15_000) => {
    const { deps } = service.platform
    const id = newUuid()
    const webhook = { id, url, secrets: secrets(id) }
    const sending: Sending = { webhook, hasFormerSecret: false, deliveryId: newUuid(), timestamp: 0, body: '{}' }
    return send(deps, sending, new AbortController().signal, timeoutMs)
  }

  it.each<[what: string, answer: (response: ServerResponse) => void, expected: object, timeoutMs?: number]>([
    ['204', answerStatus(204), { httpStatus: 204, error: null }],
    [
      'a redirect',
      answerStatus(307, { Location: '/elsewhere' }),
      { error: expect.stringMatching(/redirects are not followed/) },
    ],
    ['410', answerStatus(410), { httpStatus: 410, isGone: true }],
    ['429 with Retry-After', answerStatus(429, { 'Retry-After': '7' }), { httpStatus: 429, retryAfterMs: 7000 }],
    ['nothing', () => {}, { httpStatus: null, error: expect.stringMatching(/no answer within/) }, SHORT_MS],
    ['a broken connection', (response) => response.destroy(), { error: expect.stringMatching(/failed/) }],
    ['200 and a body without an end', (response) => endless(response, 200), { httpStatus: 200, error: null }],
    ['500 and a body without an end', (response) => endless(response, 500), { httpStatus: 500 }],
    [
      'a body that does not go on',
      (response) => void response.writeHead(200).write('a'),
      { httpStatus: 200, error: null },
      SHORT_MS,
    ],
  ])('has an outcome for %s', async (_, answer, expected, timeoutMs = 15_000) => {
    receiver.answer = answer
    expect(await sendTo(receiver.url, timeoutMs)).toMatchObject(expected)
  })

  const endless = (response: ServerResponse, status: number) => {
    response.writeHead(status)
    const timer = setInterval(() => response.write('x'.repeat(10_000)), 1)
    response.on('close', () => clearInterval(timer))
  }

  it.each([
    ['this service', () => service.url, /this service itself/],
    ['a metadata service', () => 'http://169.254.169.254/', /metadata service/],
    ['no host', () => 'http://hooks.invalid/', /no host/],
  ])('does not reach %s', async (_, url, sentence) => {
    expect((await sendTo(url())).error).toMatch(sentence)
  })
})
