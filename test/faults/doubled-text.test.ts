import { setTimeout as sleep } from 'node:timers/promises'
import { countOf } from '../support/counts.ts'
import { type Json, waitFor } from '../support/http.ts'
import { type Lane, openLanesApart, openLaneTogether } from '../support/kill-lanes.ts'
import { ANSWER_MS, type PacedModel, startPacedModel, type Texts } from '../support/paced-model.ts'
import { killProcesses } from '../support/process.ts'
import { createRandom, type Random } from '../support/random.ts'
import { expectSoundRecord, textOf } from '../support/record.ts'
import { seedsOf } from '../support/seeds.ts'
import { callUntilAnswered } from '../support/storm-client.ts'
import {
  aiSdkClient,
  type Chat,
  mcpClient,
  openaiClient,
  type Reading,
  rawClient,
  type TextClient,
  typedClient,
} from '../support/text-clients.ts'

const KILLS = countOf('doubledTextKills')
const LIMIT_MS = 120_000 + KILLS * 10_000
/** Kills after which the counts are told in between. */
const REPORTED = 25
/** Share of the kills that come soon after the clients have asked. The others come while the model answers. */
const AT_ONCE = 0.1
const STYLES = ['held', 'streamed'] as const

/** Clients of each face, which all ask the same question in one conversation. */
const FACES: ((chat: Chat) => TextClient[])[] = [
  (chat) => ['5', '6', '7'].flatMap((version) => STYLES.map((style) => aiSdkClient(chat, version, style))),
  (chat) => [...STYLES, 'whole' as const].map((style) => openaiClient(chat, style)),
]
/** Clients whose protocol can neither hold nor take back text. Only their streams may end because the text changes. */
const MAY_END = /^(AI SDK [56]|Chat Completions), streamed$/
/** Clients that also have all that the model thought. */
const HAS_THOUGHTS = /^(raw SSE|typed client|AI SDK 7, streamed)$|, (held|whole)$/

/** Question to the model, and whether its answer is another one when it is asked again. */
type Question = { text: string; isOtherwise: boolean }
type Counts = { whole: number; broken: number; changed: number; wrong: string[] }

let model: PacedModel
let lanes: (Lane & { modelId: string })[] = []
beforeAll(async () => {
  model = await startPacedModel()
  const opened = await Promise.all([openLanesApart(), openLaneTogether()])
  const withModel = async (site: Lane[]) => {
    const modelId = await model.addTo(site[0]?.service.url ?? '')
    return site.map((lane) => ({ ...lane, modelId }))
  }
  lanes = (await Promise.all(opened.map(withModel))).flat()
})
afterAll(async () => {
  await killProcesses()
  for (const service of new Set(lanes.map(({ service }) => service))) await service.stop()
  await model.close()
})

/** Reads or makes something by the API that nobody kills, which may be busy. */
const call = ({ service }: Lane, method: string, path: string, body?: object): Promise<Json> =>
  callUntilAnswered([service.url], method, path, body)
const listOf = async (lane: Lane, path: string): Promise<Json[]> => (await call(lane, 'GET', path)).data

async function openChat(lane: (typeof lanes)[number], question: string): Promise<Chat> {
  const agent = { name: `Of ${question}`, system_prompt: 'Talk.', default_model_id: lane.modelId }
  const { id } = await call(lane, 'POST', '/v1/agents', agent)
  return { urls: lane.urls, agentId: id, chatId: `chat-${question}`, question }
}

/** Waits for the turn that a chat's clients have begun. */
const placeOf = (lane: Lane, { agentId }: Chat) =>
  waitFor(async () => {
    const [session] = await listOf(lane, `/v1/sessions?agent_id=${agentId}`)
    const [turn] = session === undefined ? [] : await listOf(lane, `/v1/sessions/${session.id}/turns`)
    return turn && { urls: lane.urls, sessionId: String(session.id), turnId: String(turn.id) }
  }, 'a turn to begin')

/** Reads a turn by its face's clients and by the API's own, and judges what each of them gets. */
async function readTurn(
  lane: Lane,
  question: Question,
  { chat, clients }: { chat: Chat; clients: TextClient[] },
): Promise<void> {
  const asking = clients.map((client) => client.read())
  const place = await placeOf(lane, chat)
  const others = [rawClient(place), typedClient(place), mcpClient(place)]
  const readings = await Promise.all([...asking, ...others.map((client) => client.read())])
  const ofSession = (what: string) => listOf(lane, `/v1/sessions/${place.sessionId}/${what}`)
  const [turns, events] = await Promise.all([ofSession('turns'), ofSession('events')])
  expect(turns.map(({ status }) => status)).toEqual(['completed'])
  expectSoundRecord(events)
  const { message } = events.find(({ type }) => type === 'output.message.completed')?.data ?? {}
  const stored = { text: textOf(message), thinking: String(message.thinking) }
  const answers = model.answersTo(question.text)
  expect(answers).toContainEqual(stored)
  attempts.push(answers.length)
  for (const [index, { name }] of [...clients, ...others].entries()) {
    const reading = readings[index] as Reading
    const mayEnd = question.isOtherwise && MAY_END.test(name)
    const mayBreak = lane.kind !== 'worker'
    count(name, reading, [
      ...differences(reading, stored.text, answers),
      ...(HAS_THOUGHTS.test(name) && reading.whole.thinking.trimEnd() !== stored.thinking.trimEnd()
        ? [`has "${reading.whole.thinking}", stored is "${stored.thinking}"`]
        : []),
      ...(reading.broken.length > 0 && !mayBreak ? ['broke off, though its API lived'] : []),
      ...(reading.changed.length > 0 && !mayEnd ? ['ended, though it could go on'] : []),
    ])
  }
}

/** Says where a client does not have the stored text in the end, or had a text that begins no answer of the model. */
function differences({ whole, broken, changed }: Reading, stored: string, answers: Texts[]): string[] {
  const isMixed = ({ text, thinking }: Texts) =>
    !answers.some((answer) => answer.text.startsWith(text)) ||
    !answers.some((answer) => answer.thinking.startsWith(thinking.trimEnd()))
  return [
    ...(whole.text === stored ? [] : [`has "${whole.text}", stored is "${stored}"`]),
    ...[whole, ...broken, ...changed].filter(isMixed).map(({ text, thinking }) => `had "${thinking}" and "${text}"`),
  ]
}

const counted = new Map<string, Counts>()
/** Number of attempts of each turn. */
let attempts: number[] = []
function count(name: string, { broken, changed }: Reading, wrong: string[]): void {
  const all = counted.get(name) ?? { whole: 0, broken: 0, changed: 0, wrong: [] }
  counted.set(name, all)
  if (wrong.length === 0) all.whole++
  all.broken += broken.length
  all.changed += changed.length
  all.wrong.push(...wrong)
}

/**
 * Has each face answer a question of both kinds, and kills a process that streams the answers at a random moment.
 * `read` resolves when all clients have their answers.
 */
async function killInAnswers(lane: (typeof lanes)[number], random: Random): Promise<{ read: Promise<unknown> }> {
  const questions = [
    ...FACES.map((clientsOf) => ({ clientsOf, text: model.alike(), isOtherwise: false })),
    ...FACES.map((clientsOf) => ({ clientsOf, text: model.otherwise(random), isOtherwise: true })),
  ]
  const target = Math.floor(random() * questions.length)
  const [isAtOnce, afterMs] = [random() < AT_ONCE, random() * ANSWER_MS]
  const chats = await Promise.all(questions.map(({ text }) => openChat(lane, text)))
  const read = Promise.all(
    questions.map((question, index) => {
      const chat = chats[index] as Chat
      return readTurn(lane, question, { chat, clients: question.clientsOf(chat) })
    }),
  )
  // A failure is reported where it is awaited, after the kill.
  read.catch(() => {})
  if (!isAtOnce) await Promise.race([model.untilBegun(questions[target]?.text ?? ''), read])
  const begunAt = Date.now()
  const kill = await lane.aim((await placeOf(lane, chats[target] as Chat)).turnId)
  // The random moment is what this tests.
  await sleep(Math.max(0, afterMs - (Date.now() - begunAt)))
  await kill()
  return { read }
}

function report(seed: number, kills: Record<Lane['kind'], number>): void {
  const startedOver = attempts.filter((count) => count > 1).length
  process.stdout.write(
    `kills ${JSON.stringify(kills)}, seed ${seed}: ${startedOver} of ${attempts.length} turns began anew\n`,
  )
  for (const [name, { whole, broken, changed, wrong }] of counted)
    process.stdout.write(`  ${name}: ${whole} whole, ${broken} broken off, ${changed} changed, ${wrong.length} wrong\n`)
}

describe('clients of all protocols, whose process is killed while it streams', () => {
  const sentence = `have each character of the answer once, ${KILLS} times (SEED=%i)`
  const check = async (seed: number): Promise<void> => {
    const kills = { worker: 0, api: 0, both: 0 }
    let left = KILLS
    counted.clear()
    attempts = []
    const playLane = async (lane: (typeof lanes)[number], index: number) => {
      const random = createRandom(seed + index)
      while (left-- > 0) {
        const { read } = await killInAnswers(lane, random)
        // Once no kill is left, at most one more process of each lane is missing.
        await Promise.all([read, ...(left > 0 ? [lane.refill()] : [])])
        kills[lane.kind]++
        if ((kills.worker + kills.api + kills.both) % REPORTED === 0) report(seed, kills)
      }
    }
    try {
      await Promise.all(lanes.map(playLane))
    } finally {
      report(seed, kills)
    }
    expect([...counted].flatMap(([name, { wrong }]) => wrong.map((what) => `${name} ${what}`))).toEqual([])
  }
  it.each(seedsOf('doubledText'))(sentence, check, LIMIT_MS)
})
