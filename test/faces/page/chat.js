// Chat page as people write it with @ai-sdk/react: everything that the service's address needs is in the query.
import { useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses as hasApprovals,
  lastAssistantMessageIsCompleteWithToolCalls as hasResults,
} from 'ai7'
import { createElement as h, useState } from 'react'
import { createRoot } from 'react-dom/client'

const { api, id, key } = Object.fromEntries(new URLSearchParams(location.search))
const headers = { authorization: `Bearer ${key}` }

function Part({ part, approve }) {
  if (part.type === 'text') return h('p', { className: 'text' }, part.text)
  if (part.type === 'reasoning') return h('p', { className: 'reasoning' }, part.text)
  if (!part.type.startsWith('tool-')) return null
  const answer = (approved) => () => approve({ id: part.approval.id, approved })
  return h(
    'p',
    { className: 'tool' },
    `${part.type} ${part.state}`,
    part.state === 'approval-requested' && h('button', { type: 'button', onClick: answer(true) }, 'Approve'),
    part.state === 'approval-requested' && h('button', { type: 'button', onClick: answer(false) }, 'Deny'),
  )
}

function Chat({ messages: stored }) {
  const [text, setText] = useState('')
  const { messages, status, error, sendMessage, addToolOutput, addToolApprovalResponse, stop } = useChat({
    id,
    messages: stored,
    resume: true,
    transport: new DefaultChatTransport({ api, headers }),
    sendAutomaticallyWhen: (given) => hasApprovals(given) || hasResults(given),
    onToolCall: ({ toolCall: { toolName: tool, toolCallId } }) =>
      void addToolOutput({ tool, toolCallId, output: 'blue' }),
  })
  const send = (event) => {
    event.preventDefault()
    sendMessage({ text })
    setText('')
  }
  const halt = async () => {
    await stop()
    await fetch(`${api}/${id}/stop`, { method: 'POST', headers })
  }
  return h(
    'main',
    null,
    messages.map((message) =>
      h(
        'article',
        { key: message.id, className: message.role },
        message.parts.map((part, index) => h(Part, { key: index, part, approve: addToolApprovalResponse })),
      ),
    ),
    h('form', { onSubmit: send }, h('input', { value: text, onChange: (event) => setText(event.target.value) })),
    h('button', { type: 'button', onClick: halt }, 'Stop'),
    h('output', null, status, error && `: ${error.message}`),
  )
}

const messages = await (await fetch(`${api}/${id}/messages`, { headers })).json()
createRoot(document.body).render(h(Chat, { messages }))
