/**
 * npm run picture: makes docs/images/hero-light.png and hero-dark.png, the picture of the README. It starts services, an
 * API and two workers of its own, kills the first worker in mid-answer, and takes the picture while the turn waits for an
 * approval. Needs Chromium.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import sharp from 'sharp'
import { type RunningApp, spawnApp } from '../bench/app.ts'
import { startBrowser } from '../dev/chromium.ts'
import { ROOT } from '../dev/development.ts'
import { freePorts, startServices } from '../dev/services/index.ts'
import { print } from '../dev/terminal.ts'
import { anthropicMessages } from '../test/support/providers/anthropic-messages.ts'
import { startProvider } from '../test/support/providers/scripted-server.ts'
import { type Api, connect } from './examples/api.ts'

const MODEL = 'claude-sonnet-4-5'
const FILE = '/deploy/checkout.yaml'
const YAML = `service: checkout
replicas: 2
resources:
  cpu: 500m
  memory: 512Mi
autoscaling:
  min: 2
  max: 4
`
const QUESTION = 'Checkout is slow since the sale began. Find out why, and fix it.'
const FIRST = 'I will look at how checkout is deployed.'
const SECOND =
  'Both replicas are at their limit: 500m of CPU each, and the autoscaler may not go beyond 4. I raise the ceiling to 12 replicas and begin with 6, which the cluster has room for. Memory is at 61 %, so it stays as it is.'
const EDIT = { path: FILE, old_text: 'min: 2\n  max: 4', new_text: 'min: 6\n  max: 12' }

/** Time for which the second answer streams, at least, before the worker is killed. */
const STREAMED_MS = 2500
const WAIT_MS = 60_000
/** Size of a picture in CSS pixels. It is taken at twice the size. */
const SIZE = { width: 1440, height: 760 }
const PANES = [
  { width: 700, height: 700 },
  { width: 680, height: 700 },
]

const words = (text: string): string[] => text.match(/\S+\s*/g) ?? []

/** Answers of the provider: reads the file, and wants to change it. */
function answerTo(results: number) {
  const toolCalls = (name: string, given: object) => [{ id: `call_${name}`, name, arguments: JSON.stringify(given) }]
  const usage = (input_tokens: number, output_tokens: number) => ({ input_tokens, output_tokens })
  if (results === 0)
    return {
      text: words(FIRST),
      toolCalls: toolCalls('read_file', { path: FILE }),
      pauseMs: 30,
      usage: usage(2184, 61),
    }
  return { text: words(SECOND), toolCalls: toolCalls('edit_file', EDIT), pauseMs: 110, usage: usage(2391, 148) }
}

const resultsIn = (messages: { content: Record<string, unknown>[] }[]): number =>
  messages.flatMap(({ content }) => content).filter(({ type }) => type === 'tool_result').length

async function addAgent(api: Api, baseUrl: string): Promise<string> {
  const provider = await api.call<{ id: string }>('POST', '/v1/llm-providers', {
    name: 'Anthropic',
    provider_type: 'anthropic',
    api_key: 'key',
    base_url: baseUrl,
  })
  const model = await api.call<{ id: string }>('POST', `/v1/llm-providers/${provider.id}/models`, {
    model_id: MODEL,
    display_name: 'Claude Sonnet 4.5',
  })
  const guarded = { type: 'builtin', name: 'edit_file', description: '', parameters: {}, policy: 'requires_approval' }
  const agent = await api.call<{ id: string }>('POST', '/v1/agents', {
    name: 'On-call engineer',
    description: 'Finds and fixes problems of services. Changes need an approval.',
    system_prompt: 'You are an on-call engineer. Read before you change, and change as little as possible.',
    default_model_id: model.id,
    capabilities: [{ ref: 'session_file_system' }],
    tools: [guarded],
  })
  return agent.id
}

async function until<T>(read: () => Promise<T | undefined>, what: string): Promise<T> {
  const end = Date.now() + WAIT_MS
  while (Date.now() < end) {
    const found = await read()
    if (found !== undefined) return found
    await sleep(50)
  }
  throw new Error(`${what} did not come within ${WAIT_MS} ms`)
}

/** Waits until the first worker runs turns. */
async function warmUp(api: Api): Promise<void> {
  const { id } = await api.call<{ id: string }>('POST', '/v1/sessions', {})
  await api.call('POST', `/v1/sessions/${id}/messages?wait=9`, { message: { content: 'Hello' } })
}

type Turn = { id: string; status: string; iterations: number }

/** Runs the turn of the picture. Returns the places of its session and its timeline in the console. */
async function runTurn(api: Api, agent_id: string, workers: { first: RunningApp; startSecond(): Promise<RunningApp> }) {
  await warmUp(api)
  const { id } = await api.call<{ id: string }>('POST', '/v1/sessions', { agent_id, title: 'Checkout is slow' })
  await api.call('POST', `/v1/sessions/${id}/fs${FILE}`, { content: YAML })
  await api.call('POST', `/v1/sessions/${id}/messages`, { message: { content: QUESTION } })
  const turnIn = async (isWanted: (turn: Turn) => boolean) =>
    (await api.call<{ data: Turn[] }>('GET', `/v1/sessions/${id}/turns`)).data.find(isWanted)
  const { id: turn } = await until(() => turnIn(({ iterations }) => iterations === 2), 'the second call of the model')
  const [second] = await Promise.all([workers.startSecond(), sleep(STREAMED_MS)])
  process.kill(workers.first.pid, 'SIGKILL')
  await until(() => turnIn(({ status }) => status === 'waiting'), 'the approval')
  return { second, session: `#/sessions/${id}`, timeline: `#/sessions/${id}/turns/${turn}` }
}

/** Takes the picture: the session at the left, its timeline at the right. */
async function takePicture(browser: Browser, url: string, places: string[], theme: 'light' | 'dark'): Promise<void> {
  const shots: string[] = []
  for (const [index, place] of places.entries()) {
    const options = { viewport: PANES[index] ?? SIZE, deviceScaleFactor: 2, colorScheme: theme, locale: 'en-GB' }
    const context = await browser.newContext(options)
    const page = await context.newPage()
    await page.goto(`${url}/console${place}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page
      .getByText(index === 0 ? 'Approve' : 'Model call')
      .first()
      .waitFor()
    await page.evaluate(
      'document.querySelector(".side")?.remove(), document.querySelector(".frame").style.display = "block"',
    )
    await sleep(1500)
    await page.evaluate('document.activeElement.blur(), scrollTo(0, 0)')
    shots.push((await page.screenshot()).toString('base64'))
    await context.close()
  }
  const page = await browser.newPage({ viewport: SIZE, deviceScaleFactor: 2 })
  await page.setContent(frameOf(shots, theme))
  const picture = await page.screenshot({ omitBackground: true })
  const file = path.join(ROOT, 'docs', 'images', `hero-${theme}.png`)
  await sharp(picture).png({ palette: true, quality: 90, compressionLevel: 9 }).toFile(file)
  await page.close()
}

function frameOf(shots: string[], theme: 'light' | 'dark'): string {
  const line = theme === 'light' ? '#d5d6e2' : '#343a45'
  const images = shots.map((shot, index) => {
    const { width, height } = PANES[index] ?? SIZE
    return `<img width="${width}" height="${height}" src="data:image/png;base64,${shot}">`
  })
  return `<!doctype html><style>
    body { margin: 0; height: 100vh; display: flex; gap: 20px; align-items: center; justify-content: center; background: transparent }
    img { border: 1px solid ${line}; border-radius: 12px; box-shadow: 0 10px 30px rgb(20 20 50 / 14%) }
  </style>${images.join('')}`
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'agent-sessions-picture-'))
const [postgres = 0, redis = 0, temporal = 0, temporalUi = 0, port = 0] = await freePorts(5)
const ports = { postgres, redis, temporal, temporalUi }
const services = await startServices({ dataDir, ports, env: process.env, log: () => {} })
const environment = { ALLOW_PRIVATE_NETWORK: 'true' }
const startWorker = () => spawnApp(services, port, environment, { entryPoint: 'worker/main.ts' })
const provider = await startProvider(anthropicMessages, ({ body }) => answerTo(resultsIn(body.messages)))
const running: RunningApp[] = []
const browser = await startBrowser()
try {
  running.push(await spawnApp(services, port, environment, { entryPoint: 'api/main.ts' }))
  const first = await startWorker()
  const url = `http://127.0.0.1:${port}`
  const api = connect(url, undefined)
  const agent = await addAgent(api, provider.baseUrl)
  const { second, session, timeline } = await runTurn(api, agent, { first, startSecond: startWorker })
  running.push(second)
  for (const theme of ['light', 'dark'] as const) await takePicture(browser, url, [session, timeline], theme)
  print('docs/images/hero-light.png and hero-dark.png are made.')
} finally {
  await browser.close()
  await Promise.all(running.map(({ stop }) => stop()))
  await provider.close()
  await services.stop()
  await rm(dataDir, { recursive: true, force: true })
}
