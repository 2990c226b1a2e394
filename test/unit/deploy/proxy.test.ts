import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import { request as secureRequest } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { waitFor } from '../../support/http.ts'
import { UNTRUSTED } from '../../support/untrusted-certificate.ts'

const PROXY = fileURLToPath(new URL('../../../deploy/proxy/', import.meta.url))
const run = promisify(execFile)

function whyNoNginx(): string | undefined {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'there is no nginx'
  }
}
const why = whyNoNginx()
const describeWithNginx = why === undefined ? describe : describe.skip

let folder: string
let service: Server
let ends: (() => Promise<unknown>)[]
beforeAll(async () => {
  service = createServer((asked, answer) => answer.end(JSON.stringify(asked.headers)))
  await once(service.listen(0, '127.0.0.1'), 'listening')
})
afterAll(() => service.close())
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'proxy-'))
  ends = []
})
afterEach(async () => {
  for (const end of ends) await end()
  await rm(folder, { recursive: true })
})

async function freePort(): Promise<number> {
  const server = createTcpServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Runs trust.sh on a machine whose bridge has the address 127.0.0.1. */
async function trust(environment: NodeJS.ProcessEnv): Promise<void> {
  const ip = path.join(folder, 'ip')
  await writeFile(ip, '#!/bin/sh\necho "default via 127.0.0.1 dev eth0"\n')
  await chmod(ip, 0o755)
  const script = (await readFile(path.join(PROXY, 'trust.sh'), 'utf8')).replaceAll('/tmp/', `${folder}/`)
  await run('sh', ['-c', script], { env: { PATH: `${folder}:${process.env.PATH}`, ...environment } })
}

/** Starts nginx with the files of deploy/proxy, their addresses and folders replaced. Returns its ports. */
async function startProxy(environment: NodeJS.ProcessEnv = {}): Promise<{ port: number; tlsPort: number }> {
  await trust(environment)
  const [port, tlsPort] = [await freePort(), await freePort()]
  const { port: servicePort } = service.address() as AddressInfo
  const place = (text: string) =>
    text
      .replaceAll('/tmp/', `${folder}/`)
      .replaceAll('/dev/stdout', `${folder}/access.log`)
      .replaceAll('/tls/', `${folder}/`)
      .replaceAll('/etc/nginx/', `${folder}/`)
      .replaceAll('listen 9300', `listen 127.0.0.1:${port}`)
      .replaceAll('listen 9443', `listen 127.0.0.1:${tlsPort}`)
      .replaceAll('service:9300', `127.0.0.1:${servicePort}`)
  await mkdir(path.join(folder, 'listen.d'))
  // nginx before 1.25 does not know this line.
  const tls = (await readFile(path.join(PROXY, 'tls.conf'), 'utf8')).replace('http2 on;', '')
  await writeFile(path.join(folder, 'listen.d', 'tls.conf'), place(tls))
  await writeFile(path.join(folder, 'tls.crt'), UNTRUSTED.cert)
  await writeFile(path.join(folder, 'tls.key'), UNTRUSTED.key)
  const file = path.join(folder, 'nginx.conf')
  const others = ['fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  const text = place(await readFile(path.join(PROXY, 'nginx.conf'), 'utf8'))
  await writeFile(file, `daemon off; master_process off;\n${text.replace('http {', `http { ${others}`)}`)
  const nginx = spawn('nginx', ['-c', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [nginx.stdout, nginx.stderr])
    stream.on('data', (chunk) => {
      said += chunk
    })
  const exited = once(nginx, 'exit')
  ends.push(() => {
    nginx.kill()
    return exited
  })
  await waitFor(async () => nginx.exitCode !== null || (await ask(port).catch(() => undefined)), 'nginx')
  if (nginx.exitCode !== null) throw new Error(said)
  return { port, tlsPort }
}

/** Returns the headers that the service receives. */
function ask(port: number, headers: Record<string, string> = {}, isSecure = false): Promise<Record<string, string>> {
  const options = { host: '127.0.0.1', port, headers, agent: false as const }
  return new Promise((resolve, reject) => {
    const asked = isSecure ? secureRequest({ ...options, ca: UNTRUSTED.cert }) : request(options)
    asked
      .on('error', reject)
      .on('response', async (answer) => resolve(JSON.parse(Buffer.concat(await answer.toArray()).toString())))
    asked.end()
  })
}

describeWithNginx(`the proxy of docker-compose.yml${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  const CLAIM = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' }

  it('gives the service the address of the caller, whatever the caller claims', async () => {
    const { port } = await startProxy({ PUBLISHED_ON: '0.0.0.0' })
    expect(await ask(port)).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' })
    expect(await readFile(path.join(folder, 'access.log'), 'utf8')).toBe('')
    expect(await ask(port, CLAIM)).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' })
    const warned = /^\S+ X-Forwarded-For from 127\.0\.0\.1 is ignored: not in PROXY_ADDRESSES\n$/
    await waitFor(async () => warned.test(await readFile(path.join(folder, 'access.log'), 'utf8')), 'the warning')
  })

  it.each([
    ['on this machine, where the port is on its loopback interface', { PUBLISHED_ON: '127.0.0.1' }],
    ['whose network is in PROXY_ADDRESSES', { PUBLISHED_ON: '0.0.0.0', PROXY_ADDRESSES: '10.1.0.0/16,127.0.0.0/8' }],
  ])('believes a proxy %s', async (_which, environment) => {
    const { port } = await startProxy(environment)
    expect(await ask(port, CLAIM)).toMatchObject(CLAIM)
    // The proxy adds the last address; its caller can write all others.
    const added = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' }
    expect(await ask(port, added)).toMatchObject({ 'x-forwarded-for': '203.0.113.9' })
  })

  it('ends TLS', async () => {
    const { tlsPort } = await startProxy({ PUBLISHED_ON: '0.0.0.0' })
    const headers = await ask(tlsPort, { 'x-forwarded-proto': 'http' }, true)
    expect(headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'https' })
  })

  it.each(['2', 'proxy.example.com'])('does not start with PROXY_ADDRESSES=%s', async (PROXY_ADDRESSES) => {
    await expect(startProxy({ PROXY_ADDRESSES })).rejects.toThrow(/emerg.*(invalid network|host not found)/)
  })
})
