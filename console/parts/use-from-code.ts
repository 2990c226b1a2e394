import { addressOf, auth } from '../service.ts'
import { html, useState, type VNode } from '../ui.ts'
import { Code } from './code.ts'
import { Dialog } from './dialog.ts'
import { Icon } from './icon.ts'

/** Request that a program sends. `{id}` in a path is the id of the thing that the request before it has created. */
export type Step = { method: 'POST' | 'PATCH'; path: string; body: object }

const LANGUAGES = { curl: curlOf, TypeScript: typeScriptOf, Python: pythonOf }
type Language = keyof typeof LANGUAGES

const MESSAGE = { message: { content: 'Hello' } }

/** Starts a session with an agent and sends a message. */
export const agentSteps = (agentId?: string): Step[] => [
  { method: 'POST', path: '/v1/sessions', body: { agent_id: agentId } },
  { method: 'POST', path: '/v1/sessions/{id}/messages?wait=60', body: MESSAGE },
]
/** Sends a message to a session. */
export const sessionSteps = (sessionId: string): Step[] => [
  { method: 'POST', path: `/v1/sessions/${sessionId}/messages?wait=60`, body: MESSAGE },
]
/** Triggers a schedule. */
export const scheduleSteps = (scheduleId: string): Step[] => [
  { method: 'POST', path: `/v1/durable/schedules/${scheduleId}/trigger`, body: {} },
]

/** Button that shows how programs use a thing. */
export function UseFromCode({ steps }: { steps: Step[] }): VNode {
  const [isOpen, setOpen] = useState(false)
  const [language, setLanguage] = useState<Language>('curl')
  return html`<button type="button" onClick=${() => setOpen(true)}><${Icon} name="code" />Use from code</button>
    ${
      isOpen &&
      html`<${Dialog} title="Use from code" className="broad" onClose=${() => setOpen(false)}>
        <div class="segments" role="group" aria-label="Language">${Object.keys(LANGUAGES).map(
          (name) =>
            html`<button type="button" key=${name} aria-pressed=${name === language} onClick=${() => setLanguage(name as Language)}>${name}</button>`,
        )}</div>
        <${Code} text=${LANGUAGES[language](steps)} label=${`${language} example`} />
        ${auth.value?.mode !== 'none' && html`<p class="quiet">API_KEY is a key from <a href="#/api-keys">API keys</a>.</p>`}
      <//>`
    }`
}

const needsKey = (): boolean => auth.value?.mode !== 'none'

/** Returns shell code that starts a session without an agent and sends a message. */
export const runCommand = (): string => curlOf(agentSteps())

/** Returns shell code. The output of `jq` is the id for the next step. */
function curlOf(steps: Step[]): string {
  return steps
    .map(({ method, path, body }, index) => {
      const hasNext = index < steps.length - 1
      const address = `"${addressOf(path).replace('{id}', '$ID')}"`
      const key = needsKey() ? ` \\\n  -H "authorization: Bearer $API_KEY"` : ''
      const given = ` \\\n  -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
      const command = `curl -s -X ${method} ${address}${key}${given}`
      return hasNext ? `ID=$(${command} | jq -r .id)` : command
    })
    .join('\n')
}

function typeScriptOf(steps: Step[]): string {
  const [first] = steps
  const base = addressOf('')
  const key = needsKey() ? ', token: process.env.API_KEY' : ''
  const start = `import { createClient } from 'agent-session-client'\n\nconst client = createClient({ baseUrl: '${base}'${key} })\n`
  const [, schedule] = /schedules\/([^/]+)\/trigger/.exec(first?.path ?? '') ?? []
  if (schedule) return `${start}await client.durable.triggerSchedule({ schedule_id: '${schedule}' })`
  const [, session] = /sessions\/(session_\w+)/.exec(first?.path ?? '') ?? []
  const opened = session
    ? `const session = client.session('${session}')`
    : `const session = await client.sessions.create(${JSON.stringify(first?.body)
        .replace(/"(\w+)":"([^"]*)"/g, "$1: '$2'")
        .replace('{', '{ ')
        .replace('}', ' }')})`
  return `${start}${opened}\nconsole.log(await session.send('Hello').text())`
}

function pythonOf(steps: Step[]): string {
  const key = needsKey() ? `, "authorization": "Bearer " + os.environ["API_KEY"]` : ''
  const calls = steps.map(({ method, path, body }, index) => {
    const text = path.includes('{id}') ? `f"${path.replace('{id}', "{made['id']}")}"` : `"${path}"`
    const call = `send("${method}", ${text}, ${JSON.stringify(body)})`
    return index < steps.length - 1 ? `made = ${call}` : `print(${call})`
  })
  return `import json${needsKey() ? ', os' : ''}
from urllib.request import Request, urlopen

def send(method, path, body):
    headers = {"content-type": "application/json"${key}}
    request = Request("${addressOf('')}" + path, json.dumps(body).encode(), headers, method=method)
    return json.load(urlopen(request, timeout=90))

${calls.join('\n')}`
}
