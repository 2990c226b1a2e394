// ?api=… names another service, ?agent=… the agent, and ?session=… a session to go on with.
import { createClient, TurnFailed } from 'agent-session-client'

const page = new URL(location.href)
const chat = document.querySelector('#chat')
const form = document.querySelector('form')
const label = document.querySelector('label')
const input = document.querySelector('input')

const client = createClient({
  baseUrl: page.searchParams.get('api') ?? 'http://localhost:9300',
  // Sends the cookies of a user who has signed in to the service.
  fetch: (request) => fetch(new Request(request, { credentials: 'include' })),
})

/** Appends a paragraph. Texts of models and users are never HTML. */
function show(text, className) {
  const paragraph = document.createElement('p')
  paragraph.className = className
  paragraph.textContent = text
  chat.append(paragraph)
  return paragraph
}

/** Questions wait for each other: a model may ask several at once. */
let asked = Promise.resolve()

/** Waits for the next line that the user enters. Nothing can be entered before. */
function ask(question) {
  const answer = asked.then(() => {
    label.textContent = question
    input.disabled = false
    input.focus()
    return new Promise((resolve) => {
      form.onsubmit = (event) => {
        event.preventDefault()
        if (input.disabled) return
        resolve(input.value)
        show(input.value, 'user')
        form.reset()
        input.disabled = true
      }
    })
  })
  asked = answer
  return answer
}

/** Opens the session of the address, or a new one whose id goes there, so that a reload shows it again. */
async function openSession() {
  const id = page.searchParams.get('session')
  if (id === null) {
    const session = await client.sessions.create({ agent_id: page.searchParams.get('agent') ?? undefined })
    page.searchParams.set('session', session.id)
    history.replaceState(null, '', page)
    return session
  }
  const session = client.session(id)
  for (const { role, content } of await session.messages()) {
    const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
    if (text !== '') show(text, role)
  }
  return session
}

try {
  const session = await openSession()
  for (;;) {
    const answer = session.send(await ask('Message'), { tools: { ask_user: ({ question }) => ask(question) } })
    const paragraphs = []
    try {
      for await (const part of answer) {
        if (part.type === 'text') {
          paragraphs[part.step] ??= show('', 'agent')
          paragraphs[part.step].textContent = part.text
        }
      }
    } catch (error) {
      if (!(error instanceof TurnFailed)) throw error
      show(`The turn failed: ${error.message}`, 'error')
    }
  }
} catch (error) {
  show(`${error.message}. Reload the page to go on.`, 'error')
}
