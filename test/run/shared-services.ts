import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { ROOT } from '../../dev/development.ts'
import { guardAgainstLeak } from '../../dev/services/process.ts'

const ENTRY_POINT = 'test/support/shared/main.ts'
const READY_TIMEOUT_MS = 120_000

export interface TestServices {
  /** Answers `GET /<flavour>` with the addresses of that flavour's service. The first such request starts it. */
  url: string
  /** Stops the services. Resolves with a sentence for each unexpected end. */
  stop(): Promise<string[]>
}

interface StartedService {
  /** Line of JSON with the addresses, as the service printed it. */
  addresses: string
  stop(): Promise<void>
}

/** Creates the services that the test files of a run share: one process for each flavour, owned by this process. */
export async function createTestServices(env: NodeJS.ProcessEnv): Promise<TestServices> {
  const problems: string[] = []
  const services = new Map<string, Promise<StartedService>>()
  const find = (flavour: string) => {
    const service = services.get(flavour) ?? startService(flavour, env, (problem) => problems.push(problem))
    services.set(flavour, service)
    return service
  }
  const server = createServer((request, response) => {
    find((request.url ?? '/').slice(1)).then(
      ({ addresses }) => response.end(addresses),
      (error) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.close()
      server.closeAllConnections()
      const started = await Promise.allSettled(services.values())
      await Promise.all(started.map((service) => (service.status === 'fulfilled' ? service.value.stop() : undefined)))
      return problems
    },
  }
}

async function startService(
  flavour: string,
  env: NodeJS.ProcessEnv,
  report: (problem: string) => void,
): Promise<StartedService> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ENTRY_POINT, flavour], {
    cwd: ROOT,
    env: { ...process.env, ...env, NODE_ENV: 'test' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (child.pid === undefined) throw new Error(`${ENTRY_POINT} could not be started`)
  const guard = guardAgainstLeak(child.pid, 'SIGKILL')
  let isStopping = false
  const exited = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      guard.release()
      const isExpected = isStopping && code === 0
      if (!isExpected) report(`the shared service "${flavour}" ended with ${signal ?? `exit code ${code}`}`)
      resolve()
    })
  })
  const stop = () => {
    isStopping = true
    child.kill('SIGTERM')
    return exited
  }
  return { addresses: await firstLine(child, flavour), stop }
}

/**
 * Resolves with the first line of output, which has the addresses. Prints later lines, except those with addresses, for
 * the person who watches the run.
 */
function firstLine(child: ChildProcess, flavour: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`the shared service "${flavour}" ${why}`))
    const timer = setTimeout(() => fail('was not ready in time'), READY_TIMEOUT_MS)
    child.once('exit', () => {
      clearTimeout(timer)
      fail('ended before it was ready')
    })
    if (child.stdout === null) return fail('has no output')
    createInterface({ input: child.stdout })
      .once('line', (line) => {
        clearTimeout(timer)
        resolve(line)
      })
      .on('line', (line) => line.startsWith('{"url"') || process.stdout.write(`${line}\n`))
  })
}
