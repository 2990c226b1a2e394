import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { constants, setPriority } from 'node:os'
import { freePorts } from '../../dev/services/index.ts'
import { waitFor } from '../support/http.ts'
import { startInstrumentedProcess } from '../support/process.ts'
import { startProxy, type Proxy as TcpProxy } from '../support/proxy.ts'
import { WAITS } from './controls.ts'
import type { PointName } from './points.ts'

/** Servers that a process reaches through proxies of its own. */
export type Network = Record<'postgres' | 'redis' | 'temporal', TcpProxy>

/**
 * Place of a process, with its own network and clock. Of the two slots of a role one serves the role's address, and the
 * other waits as its spare. A spare with a worker works meanwhile.
 */
export type Slot = {
  role: Role
  number: number
  network: Network
  process?: ChildProcess | undefined
  state: 'starting' | 'spare' | 'serving' | 'down'
  isFrozen: boolean
  /** Servers from which it is cut off. */
  cuts: Set<keyof Network>
  /** Log of its process, or of the last one. */
  lines: string[]
}

export type Role = {
  name: 'API' | 'API and worker'
  entryPoint: 'api/main.ts' | 'main.ts'
  url: string
  port: number
  slots: Slot[]
  /** Set while nothing may take the place of a killed process. */
  isHeldBack: boolean
}

export type Site = {
  roles: Role[]
  /** Kills a process, whose place stays empty until `bringBack`. Resolves when it has ended. */
  kill(slot: Slot): Promise<void>
  /** Has the spare serve a role's address, and starts the role's missing processes. */
  bringBack(role: Role): void
  freeze(slot: Slot): void
  thaw(slot: Slot): void
  /** Resolves when each address is served by a process that has all it needs. Rejects when a process has ended by itself. */
  ready(): Promise<void>
  close(): Promise<void>
}

export type SiteOptions = {
  environment: Record<string, string>
  /** Addresses of the servers, as host:port, behind the proxies of the network. */
  targets: Record<keyof Network, string>
  /** Environment through a network. */
  reach(network: Network): Record<string, string>
  controlsFile: string
  plantsFile: string
  /** Called when a process has come to a point that is armed. The process stands still until this resolves. */
  onPoint(slot: Slot, point: PointName): Promise<void>
}

const INSTRUMENT = './test/proof/instrument.ts'
const READY_LIMIT_MS = 60_000
/** Lines of a process that has ended by itself which a failure shows. */
const LAST_LINES = 8

/** State of a site. */
type Running = {
  options: SiteOptions
  roles: Role[]
  slots: Slot[]
  killed: WeakSet<ChildProcess>
  /** Last lines of the processes that have ended by themselves. */
  ended: string[]
  isClosing: boolean
}

/** Starts a site. Its spares may still be starting when it is ready. */
export async function startSite(options: SiteOptions): Promise<Site> {
  const [first = 0, second = 0] = await freePorts(2)
  const roles = [
    await createRole('API', 'api/main.ts', first, options),
    await createRole('API and worker', 'main.ts', second, options),
  ]
  const slots = roles.flatMap((role) => role.slots)
  for (const [number, slot] of slots.entries()) slot.number = number
  const running: Running = { options, roles, slots, killed: new WeakSet(), ended: [], isClosing: false }
  const site: Site = {
    roles,
    kill: (slot) => kill(running, slot),
    bringBack: (role) => bringBack(running, role),
    freeze: (slot) => {
      slot.isFrozen = true
      slot.process?.kill('SIGSTOP')
    },
    thaw: (slot) => {
      slot.isFrozen = false
      slot.process?.kill('SIGCONT')
    },
    ready: () => whenReady(running),
    close: () => close(running),
  }
  try {
    // The first makes what the others load: the bundle of the workflows and the compiled modules.
    for (const slot of slots.slice(-1)) await start(running, slot)
    for (const role of roles) site.bringBack(role)
    await site.ready()
    return site
  } catch (error) {
    await site.close()
    throw error
  }
}

/** Has the spare of a role serve its address, unless a process does. */
function promote({ isClosing }: Running, { isHeldBack, slots }: Role): void {
  const spare = slots.find(({ state }) => state === 'spare')
  if (isClosing || isHeldBack || spare === undefined || slots.some(({ state }) => state === 'serving')) return
  spare.state = 'serving'
  spare.process?.kill('SIGUSR2')
}

async function start(running: Running, slot: Slot): Promise<void> {
  slot.state = 'starting'
  slot.lines = []
  const onStart = (child: ChildProcess) => {
    slot.process = child
    prioritize(child, constants.priority.PRIORITY_BELOW_NORMAL)
    child.once('exit', () => {
      Object.assign(slot, { process: undefined, state: 'down', isFrozen: false })
      if (running.isClosing || running.killed.has(child)) return
      running.ended.push(`${slot.role.name}: ${slot.lines.slice(-LAST_LINES).join('\n')}`)
      bringBack(running, slot.role)
    })
  }
  const started = await startSlot(slot, running.options, onStart)
  slot.lines = started.lines
  if (slot.process !== undefined) prioritize(slot.process, constants.priority.PRIORITY_NORMAL)
  slot.state = 'spare'
  promote(running, slot.role)
}

/**
 * Sets the priority of all threads of a process. While it starts, it leaves the processors to the others, as it would on
 * a machine of its own. Without the right to raise it again, nothing is done.
 */
function prioritize({ pid }: ChildProcess, priority: number): void {
  if (pid === undefined || process.getuid?.() !== 0) return
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), priority)
  } catch {
    // It, or one of its threads, has ended.
  }
}

function bringBack(running: Running, role: Role): void {
  role.isHeldBack = false
  promote(running, role)
  for (const slot of role.slots) {
    if (slot.state !== 'down' || running.isClosing) continue
    start(running, slot).catch((error) => {
      // A killed process starts again when its fault is over, and any other end has been noted.
      if (slot.process !== undefined) running.ended.push(String(error))
    })
  }
}

async function kill({ killed }: Running, { process, state, role }: Slot): Promise<void> {
  if (process === undefined) return
  if (state === 'serving') role.isHeldBack = true
  killed.add(process)
  await end(process)
}

async function whenReady({ ended, roles }: Running): Promise<void> {
  const isReady = async () => {
    if (ended.length > 0) throw new Error(`a process has ended by itself: ${ended.splice(0).join('\n')}`)
    return (await Promise.all(roles.map(answers))).every(Boolean)
  }
  await waitFor(isReady, 'all processes to be ready', READY_LIMIT_MS)
}

async function close(running: Running): Promise<void> {
  running.isClosing = true
  await Promise.all(running.slots.map(({ process }) => process && end(process)))
  const proxies = running.slots.flatMap(({ network }) => Object.values(network))
  await Promise.all(proxies.map((proxy) => proxy.close()))
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

async function answers({ url, slots }: Role): Promise<boolean> {
  if (!slots.some(({ state }) => state === 'serving')) return false
  try {
    const answer = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(2000) })
    return (await answer.text()).includes('"ready"')
  } catch {
    return false
  }
}

async function createRole(
  name: Role['name'],
  entryPoint: Role['entryPoint'],
  port: number,
  options: SiteOptions,
): Promise<Role> {
  const role: Role = { name, entryPoint, port, url: `http://127.0.0.1:${port}`, slots: [], isHeldBack: false }
  for (let count = 0; count < 2; count++) {
    const { postgres, redis, temporal } = options.targets
    const network = {
      postgres: await startProxy(postgres),
      redis: await startProxy(redis),
      temporal: await startProxy(temporal),
    }
    role.slots.push({ role, number: 0, network, state: 'down', isFrozen: false, cuts: new Set(), lines: [] })
  }
  return role
}

/** Starts a process that waits in front of listening. */
function startSlot(slot: Slot, options: SiteOptions, onStart: (child: ChildProcess) => void) {
  const { entryPoint, port } = slot.role
  const environment = {
    ...options.environment,
    ...options.reach(slot.network),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '.data/compile-cache',
    HOST: '127.0.0.1',
    PORT: String(port),
    PROOF_PLANTS: options.plantsFile,
    PROOF_CONTROLS: options.controlsFile,
    PROOF_SLOT: String(slot.number),
  }
  return startInstrumentedProcess(
    entryPoint,
    { environment },
    {},
    {
      node: ['--import', INSTRUMENT],
      pipes: ['pipe'],
      ready: entryPoint === 'main.ts' ? ['worker polls', WAITS] : [WAITS],
      onStart: (child) => {
        onStart(child)
        const asks = child.stdio[3] as Socket
        asks.on('error', () => {})
        // It asks for one point at a time, and waits for the answer.
        asks.on('data', (asked: Buffer) => {
          const point = asked.toString().trim() as PointName
          void options.onPoint(slot, point).finally(() => asks.write('.'))
        })
      },
    },
  )
}
