/**
 * npm run test:image: builds the image, measures it, starts docker-compose.yml with it and runs a turn.
 *
 * Needs an engine with Compose, and the images that the Dockerfile and docker-compose.yml name: in the engine, or in a
 * registry that it reaches. Without them it says so and ends with 0. Exit code 1 when something is not as it should be.
 */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { ROOT } from '../dev/development.ts'
import { freePorts } from '../dev/services/index.ts'

/** Bytes of the image, and of the layer that changes with every release. */
const MAX_IMAGE = 450e6
const MAX_APPLICATION = 10e6
/** Packages for development that npm prune keeps. */
const UNWANTED = ['node', 'prisma', 'typescript', 'jest', '@biomejs']
const PROJECT = 'agent-sessions-image-test'
const IMAGE = `${PROJECT}:test`
const ADMIN = { email: 'admin@example.com', password: randomBytes(16).toString('hex') }

const run = promisify(execFile)
const docker = async (...args: string[]): Promise<string> =>
  (await run('docker', args, { cwd: ROOT, maxBuffer: 64 * 1024 ** 2 })).stdout.trim()
const print = (line: string) => process.stdout.write(`${line}\n`)

/** Returns why the image cannot be built and run here, or undefined. */
async function whyNot(): Promise<string | undefined> {
  const fails = (...args: string[]) =>
    docker(...args).then(
      () => false,
      () => true,
    )
  if (await fails('info')) return 'there is no Docker Engine that answers'
  if (await fails('compose', 'version')) return 'there is no Docker Compose'
  for (const image of imagesNeeded()) {
    if ((await fails('image', 'inspect', image)) && (await fails('pull', '--quiet', image)))
      return `the engine has no image ${image}, and cannot pull it`
  }
  return undefined
}

function imagesNeeded(): string[] {
  const { services } = parse(readFileSync(path.join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true })
  const bases = readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8').matchAll(/^FROM (\S+:\S+)/gm)
  const others = Object.values<{ image: string; build?: string }>(services).filter(({ build }) => build === undefined)
  return [...[...bases].map(([, image = '']) => image), ...others.map(({ image }) => image)]
}

/** Returns a sentence for each property of the image that is not as it should be. */
async function examine(): Promise<string[]> {
  const [{ Size: size, Config: config }] = JSON.parse(await docker('image', 'inspect', IMAGE))
  const history = await docker('history', '--no-trunc', '--human=false', '--format', '{{.Size}} {{.CreatedBy}}', IMAGE)
  const layers = history
    .split('\n')
    .map((line) => ({ bytes: Number(line.split(' ', 1)[0]), by: line.slice(line.indexOf(' ') + 1) }))
    .filter(({ bytes }) => bytes > 0)
  print(`Image: ${toMb(size)}`)
  for (const { bytes, by } of layers) print(`  ${toMb(bytes)}  ${by.slice(0, 90)}`)
  const inside = (command: string) => docker('run', '--rm', '--network', 'none', IMAGE, 'sh', '-c', command)
  const unwanted = await inside(`cd node_modules && ls -d ${UNWANTED.join(' ')} 2>/dev/null || true`)
  const components = JSON.parse(await inside('cat sbom.json')).components.length
  print(`Bill of materials: ${components} packages`)
  return [
    size > MAX_IMAGE && `the image has ${toMb(size)}, more than ${toMb(MAX_IMAGE)}`,
    (layers[0]?.bytes ?? 0) > MAX_APPLICATION && `the application's layer has ${toMb(layers[0]?.bytes ?? 0)}`,
    unwanted !== '' && `it has development packages: ${unwanted.replaceAll('\n', ', ')}`,
    components < 100 && 'the bill of materials lacks packages',
    config.User !== '1000' && 'it does not run as user 1000',
    config.Labels?.['org.opencontainers.image.version'] === undefined && 'it has no label with its version',
  ].filter((problem) => problem !== false)
}

const toMb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Signs in, and lets the simulated model answer a message. Returns the turn's status. */
async function runTurn(origin: string): Promise<string> {
  const post = async (route: string, body: object, token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const answer = await fetch(`${origin}/v1${route}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`POST ${route} was answered ${answer.status}: ${text}`)
    return JSON.parse(text)
  }
  const { access_token: token } = await post('/auth/login', ADMIN)
  const session = await post('/sessions', {}, token)
  const message = { content: [{ type: 'text', text: 'Hello' }] }
  const { turn } = await post(`/sessions/${session.id}/messages?wait=60`, { message }, token)
  return turn.status
}

async function main(): Promise<number> {
  const reason = await whyNot()
  if (reason !== undefined) {
    print(`Skipped: ${reason}.`)
    return 0
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'image-'))
  const [port, uiPort] = await freePorts(2)
  const settings = {
    IMAGE,
    PORT: port,
    TEMPORAL_UI_PORT: uiPort,
    POSTGRES_PASSWORD: randomBytes(16).toString('hex'),
    AUTH_JWT_SECRET: randomBytes(32).toString('hex'),
    SECRETS_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
    AUTH_ADMIN_EMAIL: ADMIN.email,
    AUTH_ADMIN_PASSWORD: ADMIN.password,
  }
  const file = path.join(folder, 'env')
  await writeFile(
    file,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  )
  const compose = async (...args: string[]) => {
    const all = ['compose', '--progress', 'quiet', '--project-name', PROJECT, '--env-file', file, ...args]
    const child = spawn('docker', all, { cwd: ROOT, stdio: 'inherit' })
    const code = await new Promise((resolve) => child.on('close', resolve))
    if (code !== 0) throw new Error(`docker ${args.join(' ')} ended with ${code}`)
  }
  try {
    await compose('build')
    const problems = await examine()
    const status = await compose('up', '--detach', '--wait', '--no-build')
      .then(() => runTurn(`http://127.0.0.1:${port}`))
      .catch(async (error: Error) => {
        await compose('logs', '--tail', '30')
        return error.message
      })
    print(`A turn in the image: ${status}`)
    if (status !== 'completed') problems.push(`a turn ended with: ${status}`)
    for (const problem of problems) print(`Problem: ${problem}`)
    return problems.length === 0 ? 0 : 1
  } finally {
    await compose('down', '--volumes', '--timeout', '10')
    await rm(folder, { recursive: true })
  }
}

process.exitCode = await main()
