import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../support/http.ts'
import { createRandom, type Random } from '../support/random.ts'
import { eventsOfTurn, expectSoundRecord, textOf, turnsOf, typesOf } from '../support/record.ts'
import { seedsOf } from '../support/seeds.ts'
import { callUntilAnswered, type Follower, followSession } from '../support/storm-client.ts'
import { type StormSite, startStormSite, type Victim } from '../support/storm-site.ts'

const FAULTS = 145
const LANES = 12
/** Messages of a session, after which its lane begins another. */
const MESSAGES = 6
/** Longest time that something is away or frozen. A worker is taken for dead after four seconds. */
const MAX_MS = 8000
const MAX_PAUSE_MS = 2000
/** Bytes that a connection carries before it is cut: less than one turn. */
const MAX_CONNECTION_MS = 30_000
const TIME_LIMIT_MS = 45 * 60_000

type Fault = { at: number; until: number; name: string }
type Turn = { inputs: number; ends: string[]; restarts: number; longestGapMs: number; gapAt: number }
type Lane = { turns: Turn[]; connections: number; slowestPostMs: number }

const between = (random: Random, from: number, to: number) => from + Math.floor(random() * (to - from))

/** Injects one fault after the other, now and then two at once. */
async function storm(victims: Victim[], random: Random): Promise<Fault[]> {
  const faults: Fault[] = []
  const inject = async () => {
    const victim = victims[between(random, 0, victims.length)] as Victim
    const action = random() < 0.5 ? 'kill' : 'freeze'
    const at = Date.now()
    const ms = between(random, 0, MAX_MS)
    await victim[action](ms)
    faults.push({ at, until: Date.now(), name: `${action} ${victim.name}` })
    return victim
  }
  while (faults.length < FAULTS) {
    await inject()
    await sleep(between(random, 0, MAX_PAUSE_MS))
  }
  return faults
}

const answerOf = (mark: string) => `${mark} has its answer, which is long enough to be cut off somewhere.`

/** Two steps for each message: a call of tools, and the answer. */
const scriptOf = (marks: string[]) =>
  marks.flatMap((mark) => [
    {
      text: `Let me see what ${mark} wants.`,
      tokens_per_second: 30,
      tool_calls: [
        { name: 'add', arguments: { a: 1, b: 2 } },
        { name: 'get_weather', arguments: { location: 'Lisbon' } },
      ],
    },
    { text: answerOf(mark), tokens_per_second: 30 },
  ])

async function createSession(urls: string[], marks: string[]): Promise<string> {
  const { data } = await callUntilAnswered(urls, 'GET', '/v1/llm-models')
  const agent = await callUntilAnswered(urls, 'POST', '/v1/agents', {
    name: 'Storm',
    system_prompt: `\`\`\`llmsim\n${JSON.stringify(scriptOf(marks))}\n\`\`\``,
    default_model_id: data.find((model: Json) => model.model_id === 'llmsim-script').id,
    capabilities: [{ ref: 'test_math' }, { ref: 'test_weather' }],
  })
  return (await callUntilAnswered(urls, 'POST', '/v1/sessions', { agent_id: agent.id })).id
}

/** Holds conversations until the storm is over. Each is checked when its last message has been answered. */
async function converse(site: StormSite, random: Random, isOver: () => boolean): Promise<Lane> {
  const lane: Lane = { turns: [], connections: 0, slowestPostMs: 0 }
  while (!isOver()) {
    const marks = Array.from({ length: MESSAGES }, () => randomUUID())
    const id = await createSession(site.brittleUrls, marks)
    const follower = followSession(site.brittleUrls, id)
    const accepted: string[] = []
    for (const mark of marks) {
      const sentAt = Date.now()
      const message = { message: { content: [{ type: 'text', text: mark }] } }
      const posted = await callUntilAnswered(site.brittleUrls, 'POST', `/v1/sessions/${id}/messages`, message)
      lane.slowestPostMs = Math.max(lane.slowestPostMs, Date.now() - sentAt)
      accepted.push(posted.id.replace('message_', 'turn_'))
      // Every other message, roughly, comes while the one before is being answered.
      if (random() < 0.5) await untilEnded(follower, accepted)
      if (isOver()) break
    }
    await untilEnded(follower, accepted)
    await follower.until(({ type, data }) => type === 'session.idled' && data.turn_id === accepted.at(-1))
    await follower.stop()
    lane.connections += follower.connections()
    const { data: record } = await callUntilAnswered(site.urls, 'GET', `/v1/sessions/${id}/events`)
    expect(follower.received).toEqual(record)
    lane.turns.push(...check(record, accepted, marks))
  }
  return lane
}

const END = /^turn\.(completed|failed|cancelled)$/

const untilEnded = (follower: Follower, accepted: string[]) =>
  follower.until(({ type, data }) => END.test(type) && data.turn_id === accepted.at(-1))

/** Expects that the record is sound, has no message but those accepted, in order, and for each its own answer. */
function check(record: Json[], accepted: string[], marks: string[]): Turn[] {
  expectSoundRecord(record)
  const turns = turnsOf(record)
  expect([...new Set(turns)]).toEqual(accepted)
  return accepted.map((turnId, index) => {
    const events = eventsOfTurn(record, turnId)
    const types = typesOf(events)
    const answers = events.filter(({ type }) => type === 'output.message.completed')
    expect(answers.map(({ data }) => textOf(data.message))).toEqual([
      expect.stringContaining(marks[index] as string),
      answerOf(marks[index] as string),
    ])
    const results = events.filter(({ type }) => type === 'tool.completed')
    expect(results.map(({ data }) => data.status)).toEqual(['success', 'success'])
    const times = (type: string) => types.filter((other) => other === type).length
    const moments = events.slice(types.indexOf('turn.started')).map(({ ts }) => Date.parse(ts))
    const gaps = moments.slice(1).map((time, gap) => time - (moments[gap] as number))
    const longestGapMs = Math.max(...gaps)
    return {
      inputs: turns.filter((other) => other === turnId).length,
      ends: types.filter((type) => END.test(type)),
      restarts: times('output.message.started') - times('reason.started'),
      longestGapMs,
      gapAt: moments[gaps.indexOf(longestGapMs)] as number,
    }
  })
}

function count(turns: Turn[]) {
  const having = (fits: (turn: Turn) => boolean) => turns.filter(fits).length
  return {
    accepted: turns.length,
    completed: having(({ ends }) => ends.join() === 'turn.completed'),
    lost: having(({ inputs, ends }) => inputs === 0 || ends.length === 0),
    doubled: having(({ inputs, ends }) => inputs > 1 || ends.length > 1),
  }
}

function report(seed: number, faults: Fault[], lanes: Lane[]): string {
  const turns = lanes.flatMap((lane) => lane.turns)
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
  const kinds = [...new Set(faults.map(({ name }) => name))].sort()
  const during = ({ gapAt, longestGapMs }: Turn) =>
    faults.filter(({ at, until }) => at < gapAt + longestGapMs && until > gapAt).map(({ name }) => name)
  const stalls = turns.toSorted((a, b) => b.longestGapMs - a.longestGapMs).slice(0, 8)
  return [
    `${faults.length} faults, seed ${seed}: ${kinds.map((kind) => `${kind} ${faults.filter(({ name }) => name === kind).length}`).join(', ')}`,
    `messages: ${JSON.stringify(count(turns))}`,
    `restarted steps ${sum(turns.map(({ restarts }) => restarts))}; connections that broke ${sum(lanes.map(({ connections }) => connections))}`,
    `slowest 201: ${Math.max(...lanes.map(({ slowestPostMs }) => slowestPostMs))} ms`,
    ...stalls.map((turn) => `stall of ${turn.longestGapMs} ms during: ${during(turn).join(', ') || 'no fault'}`),
    '',
  ].join('\n')
}

describe('the whole service, while its parts are killed and frozen at random and clients lose their connections', () => {
  let site: StormSite
  let lifetime: Random
  beforeAll(async () => {
    lifetime = createRandom(1)
    site = await startStormSite(() => between(lifetime, 500, MAX_CONNECTION_MS))
  })
  afterAll(() => site?.close())

  it.each(seedsOf('storm'))(
    `answers each message once and skips no event, through ${FAULTS} faults (SEED=%i)`,
    async (seed) => {
      let isOver = false
      const lanes = Promise.all(
        Array.from({ length: LANES }, (_, lane) => converse(site, createRandom(seed + lane + 1), () => isOver)),
      )
      const faults = await Promise.race([storm(site.victims, createRandom(seed)), lanes.then(() => [])])
      isOver = true
      process.stdout.write(report(seed, faults, await lanes))
      expect(faults).toHaveLength(FAULTS)
      const counts = count((await lanes).flatMap(({ turns }) => turns))
      expect(counts).toEqual({ accepted: counts.accepted, completed: counts.accepted, lost: 0, doubled: 0 })
    },
    TIME_LIMIT_MS,
  )
})
