import { randomUUID } from 'node:crypto'
import { addOwnOrganization, bearer, createApiKey, registerUser } from '../../support/auth.ts'
import { type Fault, type FaultyProxy, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { call, type Json, modelId, type Target, waitFor } from '../../support/http.ts'
import { sharedService } from '../../support/shared/service.ts'
import { clientTool, guardedTool } from '../../support/turns.ts'
import { comparable, expectNothingOpen, expectShown, readTurns, type StoredTurn, sessionOf } from './checks.ts'
import { lastOf, loadMessages, loadPage, openChat, type PageTools, type Place, settled } from './page.ts'
import type { Chat, FilePart, UiMessage, Version, VersionName } from './versions.ts'
import { versions } from './versions.ts'

/** Chat with an agent of its own, in a page that speaks to the service through a proxy. */
export type Stage = {
  version: Version
  place: Place
  /** The service itself, for its REST interface. */
  target: Target
  proxy: FaultyProxy
  chat: Chat
  /** Spoils the next requests that the page makes, in this order. */
  spoil(...faults: (Fault | undefined)[]): void
  /** Leaves the page's requests alone from now on. */
  mend(): void
  /** Sends a message and waits until the page is done with it. Returns the last message. */
  say(text: string, files?: FilePart[]): Promise<UiMessage | undefined>
  /** Loads the page anew. Tools that were given before are forgotten. */
  reload(tools?: PageTools): Promise<void>
  /** Opens the chat in a page without its messages. */
  reopen(tools?: PageTools): void
  turns(): Promise<StoredTurn[]>
  lastTurn(): Promise<StoredTurn>
  /** Waits until a turn has begun since the last check, and the newest one has `nth` events of a type. */
  untilEvent(type: string, nth?: number): Promise<void>
  /** Number of messages that pages have sent. */
  posts(): number
  /** Expects that live page, page loaded anew and record agree, and that nothing is open. */
  check(): Promise<void>
  close(): Promise<void>
}

export const GUARDED = 'echo'
/** Tools of the page. */
export const PAGE_TOOLS = ['ask_user', 'look_around']
const AGENT = {
  capabilities: [{ ref: 'lab' }],
  tools: [guardedTool(GUARDED), ...PAGE_TOOLS.map((name) => clientTool(name))],
}

/** Registers a user, and returns the service as a program with the user's API key sees it: with one header. */
export async function newAccount(): Promise<{ url: string; headers: Record<string, string>; key: string }> {
  const { url } = await sharedService('full')
  const organization = await addOwnOrganization(url, await registerUser(url))
  const { key } = await createApiKey(url, organization.headers)
  return { url, headers: bearer(key), key }
}

/** Creates an agent whose model plays the steps. It has the tools of the lab, `echo` among them guarded, and the page's. */
export async function createAgent(target: Target, steps: object[], more: object = {}): Promise<string> {
  const { status, body } = await call(target, 'POST', '/v1/agents', {
    name: `Of ${randomUUID()}`,
    system_prompt: `Play.\n\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``,
    default_model_id: await modelId(target, 'llmsim-script'),
    ...AGENT,
    ...more,
  })
  if (status !== 201) throw new Error(`agent: ${status} ${JSON.stringify(body)}`)
  return body.id
}

type StageOptions = {
  target: Target
  /** Service that the page speaks to, if it is not the target. */
  pageTarget?: Target
  version: VersionName
  steps: object[]
}

/** Opens a new chat, with an agent of its own, in a page of the given version. */
export async function openStage({ target, pageTarget = target, version: name, steps }: StageOptions): Promise<Stage> {
  const faults: (Fault | undefined)[] = []
  const proxy = await startFaultyProxy(pageTarget, () => faults.shift(), 'keep-alive')
  const version = versions[name]
  const agentId = await createAgent(target, steps)
  const place: Place = {
    target: proxy.target,
    version,
    ai: await version.load(),
    agentId,
    chatId: `chat ${randomUUID()}`,
  }
  /** Number of turns that the last check has seen. */
  let checked = 0
  const turns = async () => readTurns(target, await sessionOf(target, agentId))
  const lastTurn = async () => {
    const turn = (await turns()).at(-1)
    if (turn === undefined) throw new Error('there is no turn')
    return turn
  }
  const stage: Stage = {
    ...{ version, place, target, proxy, turns, lastTurn },
    chat: openChat(place),
    spoil: (...next) => void faults.push(...next),
    mend: () => void faults.splice(0),
    say: async (text, files) => {
      await stage.chat.sendMessage({ text, ...(files && { files }) })
      await settled(stage.chat)
      return lastOf(stage.chat)
    },
    reload: async (tools) => {
      stage.chat = await loadPage(place, tools)
      await settled(stage.chat)
    },
    reopen: (tools) => {
      stage.chat = openChat(place, stage.chat.messages, tools)
    },
    untilEvent: (type, nth = 1) => untilEvent(target, agentId, { type, nth, after: checked }),
    posts: () => proxy.exchanges.filter(({ method, path }) => method === 'POST' && !path.endsWith('/stop')).length,
    check: async () => {
      checked = await check(stage)
    },
    close: () => proxy.close(),
  }
  return stage
}

type Awaited = { type: string; nth: number; after: number }

async function untilEvent(target: Target, agentId: string, { type, nth, after }: Awaited): Promise<void> {
  await waitFor(async () => {
    const [session] = (await call(target, 'GET', `/v1/sessions?agent_id=${agentId}`)).body.data
    if (session === undefined) return false
    const events: Json[] = (await call(target, 'GET', `/v1/sessions/${session.id}/events`)).body.data
    const starts = events.flatMap((event, index) => (event.type === 'turn.started' ? [index] : []))
    const ofTurn = events.slice(starts.at(-1))
    return starts.length > after && ofTurn.filter((event) => event.type === type).length >= nth
  }, `${type} of ${agentId}`)
}

async function check(stage: Stage): Promise<number> {
  await settled(stage.chat)
  const turns = await stage.turns()
  expect(turns.filter(({ status }) => !['completed', 'failed', 'cancelled'].includes(status))).toEqual([])
  expectShown(stage.chat.messages, turns)
  expectNothingOpen(stage.chat.messages)
  const loaded = await loadMessages(stage.place)
  expectShown(loaded, turns)
  expectNothingOpen(loaded)
  expect(comparable(loaded)).toEqual(comparable(stage.chat.messages))
  await waitFor(async () => stage.proxy.open === 0, 'all connections of the page to close')
  return turns.length
}
