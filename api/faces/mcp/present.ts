import type { CallToolResult } from '@modelcontextprotocol/server'
import { type Message, textOf } from '../../../contract/messages.ts'
import type { Turn } from '../../../contract/turns.ts'
import type { AgentAnswer } from './contract.ts'

export function presentAnswer({ turn, output }: { turn: Turn; output: Message | null }): AgentAnswer {
  const text = output === null ? '' : textOf(output.content)
  return {
    session: turn.session_id,
    turn: turn.id,
    status: turn.status,
    ...(text === '' ? {} : { text }),
    pending: turn.pending_tool_calls,
    ...(turn.error == null ? {} : { error: turn.error }),
  }
}

/** Presents the answer to programs, and in words to models whose hosts show them only text. */
export function toResult(answer: AgentAnswer, ...notes: string[]): CallToolResult {
  const { session, turn, status } = answer
  const names = [`session: ${session}`, ...(turn === undefined ? [] : [`turn: ${turn}`]), `status: ${status}`]
  const words = [...notes, ...inWords(answer), names.join('\n')]
  return { content: words.map((text) => ({ type: 'text', text })), structuredContent: answer }
}

/** A failure that the calling model can act on. */
export const toError = (sentence: string): CallToolResult => ({
  content: [{ type: 'text', text: sentence }],
  isError: true,
})

function inWords({ status, text, error, pending }: AgentAnswer): string[] {
  const said = text === undefined ? [] : [text]
  switch (status) {
    case 'idle':
      return ['The session has no messages yet; send one with agent_send.']
    case 'queued':
      return ['The message waits for earlier turns of its session. Wait for its answer with agent_get.']
    case 'active':
      return [...said, 'The agent is still working. Wait for its answer with agent_get.']
    case 'waiting':
      return [...said, describePending(pending)]
    case 'completed':
      return text === undefined ? ['The agent has finished without a text.'] : said
    case 'failed':
      return [...said, `The turn has failed: ${error ?? 'the reason is not known'}`]
    case 'cancelled':
      return [...said, 'The turn was cancelled.']
  }
}

function describePending(pending: AgentAnswer['pending']): string {
  const lines = pending.map(({ id, name, kind, arguments: args }) => {
    const wanted = kind === 'approval' ? 'approval of' : 'the result of'
    return `- ${wanted} ${name}, call_id ${JSON.stringify(id)}, arguments ${JSON.stringify(args)}`
  })
  return ['The agent waits for these calls. Answer them with agent_send:', ...lines].join('\n')
}
