import { Agent, get } from 'node:http'
import { serveParent } from './child.ts'

const EVERY_MS = 20

/** Process that asks for /health every 20 ms. Answers each message with the times since the last one, in ms. */
const [url = ''] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true })
let times: number[] = []

const ask = (): void => {
  const startedAt = performance.now()
  const end = () => void times.push(performance.now() - startedAt)
  get(`${url}/health`, { agent }, (answer) => answer.resume().on('end', end)).on('error', end)
}
const timer = setInterval(ask, EVERY_MS)

serveParent(
  'ready',
  async () => {
    const taken = times
    times = []
    return taken
  },
  async () => {
    clearInterval(timer)
    agent.destroy()
  },
)
