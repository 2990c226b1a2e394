/**
 * A chat in the terminal, on the typed client. In the service's repository:
 *
 *     npm run client && cd examples && npm install && ../node_modules/.bin/node chat.ts [agent_0193…]
 *
 * The agent's tool ask_user asks here. API_URL and API_TOKEN name another service, and who calls.
 */
import { createInterface } from 'node:readline'
import { createClient, TurnFailed } from 'agent-session-client'

const { API_URL = 'http://localhost:9300', API_TOKEN } = process.env
const CLEAR_LINE = '\r\x1b[K'

const print = (text: string) => process.stdout.write(text)
/** Lines that nobody has asked for yet, and questions that have no line yet. Empty lines follow the end of the input. */
const lines: string[] = []
const questions: ((line: string) => void)[] = []
let isOver = false
const take = (line: string) => {
  const answer = questions.shift()
  if (answer) answer(line)
  else lines.push(line)
}
createInterface({ input: process.stdin })
  .on('line', take)
  .on('close', () => {
    isOver = true
    for (const answer of questions.splice(0)) answer('')
  })
const read = (prompt: string): Promise<string> => {
  print(prompt)
  const line = lines.shift() ?? (isOver ? '' : undefined)
  return line === undefined ? new Promise((resolve) => questions.push(resolve)) : Promise.resolve(line)
}

const client = createClient({ baseUrl: API_URL, token: API_TOKEN })
const session = await client.sessions.create({ agent_id: process.argv[2] })
print(`Session ${session.id}. An empty line ends the chat.\n`)
for (let text = await read('> '); text !== ''; text = await read('> ')) {
  const answer = session.send(text, { tools: { ask_user: ({ question }) => read(`${CLEAR_LINE}${question} `) } })
  try {
    for await (const part of answer) {
      if (part.type === 'text') print(CLEAR_LINE + part.text.replaceAll('\n', ' ').slice(-100))
      if (part.type === 'restarted') print(CLEAR_LINE)
    }
    print(`${CLEAR_LINE}${await answer.text()}\n`)
  } catch (error) {
    if (!(error instanceof TurnFailed)) throw error
    print(`${CLEAR_LINE}The turn failed: ${error.message}\n`)
  }
  questions.length = 0 // a turn that was cancelled needs no line any more
}
process.exit()
