import { setTimeout as sleep } from 'node:timers/promises'
import { addressOf, headersOf, type Target, waitFor } from '../../support/http.ts'
import type { AiPackage, Chat, ChatInit, Part, UiMessage, Version } from './versions.ts'

/** Where a page's chat is: the service, and the face's address there. */
export type Place = { target: Target; version: Version; ai: AiPackage; agentId: string; chatId: string }

/** Tools that a page runs itself: what each returns for its input. */
export type PageTools = Record<string, (input: unknown) => unknown>

/** State of a chat as the frameworks' packages keep it. */
class State {
  status = 'ready'
  error: Error | undefined
  messages: UiMessage[]
  constructor(messages: UiMessage[]) {
    this.messages = messages
  }
  pushMessage = (message: UiMessage) => {
    this.messages = [...this.messages, message]
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UiMessage) => {
    this.messages = this.messages.with(index, structuredClone(message))
  }
  snapshot = <T>(thing: T): T => structuredClone(thing)
}

const apiOf = ({ target, version, agentId }: Place): string =>
  `${addressOf(target)}/v1/faces/ai-sdk/${version.major}/${agentId}`

/** Fails as Chromium's fetch does, whose error of a lost connection the packages know by its text. */
const fetchAsChromium: typeof fetch = async (...args) => {
  const failed = (text: string) => (error: Error) => {
    throw error.name === 'AbortError' ? error : new TypeError(text)
  }
  const answer = await fetch(...args).catch(failed('Failed to fetch'))
  if (answer.body === null) return answer
  const reader = answer.body.getReader()
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await reader.read().catch(failed('network error'))
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
  return new Response(body, answer)
}

/** Opens a chat in a page that has these messages, and nothing else. */
export function openChat(place: Place, messages: UiMessage[] = [], tools: PageTools = {}): Chat {
  const { ai } = place
  const transport = new ai.DefaultChatTransport({
    api: apiOf(place),
    headers: headersOf(place.target),
    fetch: fetchAsChromium,
  })
  class PageChat extends ai.AbstractChat {
    constructor(init: Omit<ChatInit, 'state'>) {
      super({ ...init, state: new State(messages) })
    }
  }
  const chat: Chat = new PageChat({
    id: place.chatId,
    transport,
    sendAutomaticallyWhen: (options) =>
      ai.lastAssistantMessageIsCompleteWithToolCalls(options) ||
      ai.lastAssistantMessageIsCompleteWithApprovalResponses?.(options) === true,
    onToolCall: ({ toolCall }) => {
      const run = tools[toolCall.toolName]
      // Not awaited, because the chat would wait for itself.
      if (run) void chat.addToolOutput({ ...toolCall, tool: toolCall.toolName, output: run(toolCall.input) })
    },
  })
  return chat
}

/** Returns the stored messages of the chat, as a page asks for them when it is loaded. */
export async function loadMessages(place: Place): Promise<UiMessage[]> {
  const answer = await fetch(`${apiOf(place)}/${encodeURIComponent(place.chatId)}/messages`, {
    headers: headersOf(place.target),
  })
  if (answer.status !== 200) throw new Error(`messages: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as UiMessage[]
}

/**
 * Loads the page anew: stored messages, and then the running turn. A turn that ended between the two is in neither, so
 * the messages are asked for once more. Resolves when nothing runs.
 */
export async function loadPage(place: Place, tools: PageTools = {}): Promise<Chat> {
  const chat = openChat(place, await loadMessages(place), tools)
  await chat.resumeStream()
  await settled(chat)
  if (chat.status === 'ready' && lastOf(chat)?.role === 'user') chat.messages = await loadMessages(place)
  return chat
}

/** Asks the service to stop the chat's turn, as a page's stop button does. */
export const stopTurn = (place: Place, body: object = {}): Promise<Response> =>
  fetch(`${apiOf(place)}/${encodeURIComponent(place.chatId)}/stop`, {
    method: 'POST',
    headers: { ...headersOf(place.target), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** Longest time that a chat's answer takes in these tests. A chat that sends for ever by itself never settles. */
const SETTLED_MS = 60_000

/** Waits until a chat neither sends nor receives, and starts neither by itself. */
export async function settled(chat: Chat): Promise<void> {
  await waitFor(
    async () => {
      if (chat.status !== 'ready' && chat.status !== 'error') return false
      // A chat that sends by itself does so in the next tasks.
      await sleep(50)
      return chat.status === 'ready' || chat.status === 'error'
    },
    'the chat to settle',
    SETTLED_MS,
  )
}

export const partsOf = (message: UiMessage | undefined, type: string): Part[] =>
  (message?.parts ?? []).filter((part) => part.type === type)
export const textOf = (message: UiMessage | undefined): string =>
  partsOf(message, 'text')
    .map(({ text }) => text)
    .join('')
export const toolParts = (message: UiMessage | undefined): Part[] =>
  (message?.parts ?? []).filter(({ type }) => type.startsWith('tool-') || type === 'dynamic-tool')
export const lastOf = (chat: Chat): UiMessage | undefined => chat.messages.at(-1)
