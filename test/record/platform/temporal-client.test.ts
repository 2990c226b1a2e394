import { randomUUID } from 'node:crypto'
import { Client, Connection, type WorkflowHandle } from '@temporalio/client'
import { msToTs } from '@temporalio/common'
import { NativeConnection, Runtime } from '@temporalio/worker'
import { pino } from 'pino'
import { newUuid, toId } from '../../../domain/kit/ids.ts'
import type { StartedTurn } from '../../../domain/turns/turn-workflows.ts'
import { connectTemporal, type Temporal } from '../../../platform/temporal/temporal.ts'
import { RESUME_SIGNAL } from '../../../workflows/messages.ts'
import { waitFor } from '../../support/http.ts'

/** Values of temporal.api.enums.v1.IndexedValueType. */
const KEYWORD = 2
const INT = 3
const ATTRIBUTES = { SessionId: KEYWORD, AgentId: KEYWORD, OrganizationId: KEYWORD, ScheduleId: KEYWORD }
const address = process.env.TEMPORAL_ADDRESS ?? ''
const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }

let connection: Connection
let native: NativeConnection
beforeAll(async () => {
  Runtime.install({ shutdownSignals: [], logger: silent })
  connection = await Connection.connect({ address })
  native = await NativeConnection.connect({ address })
})
afterAll(async () => {
  await Promise.all([native.close(), connection.close()])
  await Runtime.instance().shutdown()
})

const opened: Temporal[] = []
let warnings: string[] = []
afterEach(async () => {
  warnings = []
  for (const temporal of opened.splice(0)) await temporal.close()
})

/**
 * Connects to Temporal as a process of the service does. No worker polls the queue, so workflows stay as they were
 * started.
 */
function open(namespace: string, at = address): Temporal {
  const config = {
    TEMPORAL_ADDRESS: at,
    TEMPORAL_NAMESPACE: namespace,
    TEMPORAL_TASK_QUEUE: `unpolled-${randomUUID()}`,
  }
  const log = pino({ level: 'warn' }, { write: (line) => void warnings.push(line) })
  const temporal = connectTemporal(config, log)
  opened.push(temporal)
  return temporal
}

/** Creates a namespace for one test. As in a new installation, only the given search attributes are registered. */
async function createNamespace(searchAttributes: Record<string, number> = {}): Promise<string> {
  const namespace = `test-${randomUUID()}`
  const workflowExecutionRetentionPeriod = msToTs('1 day')
  await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod })
  const { operatorService } = connection
  await eventually(() => operatorService.listSearchAttributes({ namespace }))
  if (Object.keys(searchAttributes).length > 0) {
    await eventually(() => operatorService.addSearchAttributes({ namespace, searchAttributes }))
  }
  return namespace
}

/** Retries until all of Temporal knows a new namespace. */
const eventually = (work: () => Promise<unknown>) =>
  waitFor(
    () =>
      work().then(
        () => true,
        () => false,
      ),
    'the namespace',
  )

const registered = async (namespace: string) =>
  (await connection.operatorService.listSearchAttributes({ namespace })).customAttributes

const newTurn = (agentId: string | null = newUuid()): StartedTurn => ({
  organizationId: newUuid(),
  sessionId: newUuid(),
  turnId: newUuid(),
  agentId,
})

const handleOf = (namespace: string, { turnId }: { turnId: string }): WorkflowHandle =>
  new Client({ connection, namespace }).workflow.getHandle(toId('turn', turnId))

async function attributesOf(namespace: string, turn: StartedTurn): Promise<Record<string, unknown>> {
  const { typedSearchAttributes } = await handleOf(namespace, turn).describe()
  return Object.fromEntries(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]))
}

const wireAttributes = ({ organizationId, sessionId, agentId }: StartedTurn) => ({
  SessionId: toId('session', sessionId),
  OrganizationId: toId('org', organizationId),
  ...(agentId === null ? {} : { AgentId: toId('agent', agentId) }),
})

/** Starts turns until one has the attributes. */
const startLabelled = (namespace: string, temporal: Temporal) =>
  waitFor(async () => {
    const turn = newTurn()
    await temporal.startTurn(turn, turn.organizationId)
    return Object.keys(await attributesOf(namespace, turn)).length > 0 && turn
  }, 'a turn with search attributes')

async function eventsOf(namespace: string, turn: StartedTurn) {
  return (await handleOf(namespace, turn).fetchHistory()).events ?? []
}

describe('starting a turn', () => {
  it('registers the search attributes, even if others do so at the same time', async () => {
    const namespace = await createNamespace()
    const processes = Array.from({ length: 5 }, () => open(namespace))
    await waitFor(async () => Object.keys(await registered(namespace)).length === 4, 'the attributes')
    expect(await registered(namespace)).toEqual(ATTRIBUTES)
    for (const temporal of processes) {
      const turn = await startLabelled(namespace, temporal)
      expect(await attributesOf(namespace, turn)).toEqual(wireAttributes(turn))
    }
  })

  it('makes its turns findable by session, agent and organization', async () => {
    const namespace = await createNamespace(ATTRIBUTES)
    const turn = await startLabelled(namespace, open(namespace))
    const client = new Client({ connection, namespace })
    for (const [name, value] of Object.entries(wireAttributes(turn))) {
      const found = waitFor(async () => (await client.workflow.count(`${name} = '${value}'`)).count === 1, name)
      await expect(found).resolves.toBe(true)
    }
  })

  it('leaves the agent out where there is none', async () => {
    const namespace = await createNamespace(ATTRIBUTES)
    const temporal = open(namespace)
    await startLabelled(namespace, temporal)
    const turn = newTurn(null)
    await temporal.startTurn(turn, turn.organizationId)
    expect(await attributesOf(namespace, turn)).toEqual(wireAttributes(turn))
    expect((await handleOf(namespace, turn).describe()).memo).toEqual({
      session_id: toId('session', turn.sessionId),
      organization_id: toId('org', turn.organizationId),
    })
  })

  it('passes the three ids and nothing else', async () => {
    const temporal = open('default')
    const turn = newTurn()
    await temporal.startTurn({ ...turn, ...{ systemPrompt: 'PROMPT-4711' } }, turn.organizationId)
    const [started] = await eventsOf('default', turn)
    const { input, memo } = started?.workflowExecutionStartedEventAttributes ?? {}
    const payloads = (input?.payloads ?? []).map(({ data }) => JSON.parse(Buffer.from(data ?? []).toString()))
    const { organizationId, sessionId, turnId } = turn
    const asTheApi = {
      organizationId: toId('org', organizationId),
      sessionId: toId('session', sessionId),
      turnId: toId('turn', turnId),
    }
    expect(payloads).toEqual([asTheApi])
    expect(Object.keys(memo?.fields ?? {}).sort()).toEqual(['agent_id', 'organization_id', 'session_id'])
    await handleOf('default', turn).terminate()
  })

  it('starts a turn at once while another owner starts many', async () => {
    const temporal = open('default')
    const many = Array.from({ length: 200 }, () => newTurn())
    let started = 0
    const all = Promise.all(many.map((turn) => temporal.startTurn(turn, 'many').then(() => started++)))
    const turn = newTurn()
    await temporal.startTurn(turn, 'other')
    expect(started).toBeLessThan(many.length / 4)
    await all
    await Promise.all([turn, ...many].map((turn) => handleOf('default', turn).terminate()))
  })

  it("starts no more of an owner's turns until the started ones have gone on", async () => {
    const temporal = open('default')
    const goneOn = Promise.withResolvers<void>()
    const started = Array.from({ length: 4 }, () => newTurn())
    await Promise.all(started.map((turn) => temporal.startTurn(turn, 'owner', goneOn.promise)))
    const next = newTurn()
    let isStarted = false
    const starting = temporal.startTurn(next, 'owner').then(() => {
      isStarted = true
    })
    await temporal.startTurn(newTurn(), 'other')
    expect(isStarted).toBe(false)
    goneOn.resolve()
    await starting
    await Promise.all([...started, next].map((turn) => handleOf('default', turn).terminate()))
  })

  it('works without search attributes if Temporal refuses to register them', async () => {
    // All keyword attributes are taken. Temporal refuses more with the same error as for a missing permission.
    const others = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`Other${index}`, KEYWORD]))
    const namespace = await createNamespace(others)
    const temporal = open(namespace)
    await waitFor(async () => warnings.length > 0, 'Temporal to refuse')
    const turns = [newTurn(), newTurn()]
    for (const turn of turns) {
      await temporal.startTurn(turn, turn.organizationId)
      expect(await attributesOf(namespace, turn)).toEqual({})
    }
    expect(await registered(namespace)).toEqual(others)
    expect(warnings).toHaveLength(1)
  })

  it('leaves an attribute of the same name but another type alone', async () => {
    const namespace = await createNamespace({ AgentId: INT })
    const temporal = open(namespace)
    const turn = await waitFor(async () => {
      const turn = newTurn()
      await temporal.startTurn(turn, turn.organizationId)
      return Object.keys(await attributesOf(namespace, turn)).length === 2 && turn
    }, 'a turn with the other two')
    expect(await attributesOf(namespace, turn)).toEqual(wireAttributes({ ...turn, agentId: null }))
    expect(await registered(namespace)).toEqual({ ...ATTRIBUTES, AgentId: INT })
  })

  it.each(['its own connection', "the worker's connection"])(
    'survives that the attributes are removed while it runs, on %s',
    async (which) => {
      const namespace = await createNamespace(ATTRIBUTES)
      const temporal = open(namespace)
      if (which !== 'its own connection') temporal.useWorkerConnection(native)
      await startLabelled(namespace, temporal)
      await connection.operatorService.removeSearchAttributes({ namespace, searchAttributes: Object.keys(ATTRIBUTES) })
      await waitFor(async () => {
        const turn = newTurn()
        await temporal.startTurn(turn, turn.organizationId)
        return Object.keys(await attributesOf(namespace, turn)).length === 0
      }, 'a turn without search attributes')
    },
  )
})

describe.each(['its own connection', "the worker's connection"])('a turn that is asked about on %s', (which) => {
  let temporal: Temporal
  beforeEach(() => {
    temporal = open('default')
    if (which !== 'its own connection') temporal.useWorkerConnection(native)
  })
  const startTurn = async () => {
    const turn = newTurn()
    await temporal.startTurn(turn, turn.organizationId)
    return turn
  }

  it('runs from its start to its end', async () => {
    const turn = await startTurn()
    expect(await temporal.readTurnState(turn.turnId)).toBe('running')
    await handleOf('default', turn).terminate()
    expect(await temporal.readTurnState(turn.turnId)).toBe('closed')
  })

  it('gets a resume as a signal without content, and a cancel as a request', async () => {
    const turn = await startTurn()
    await temporal.resumeTurn(turn.turnId, 'owner')
    await temporal.cancelTurn(turn.turnId, 'owner')
    const events = await eventsOf('default', turn)
    const signal = events.flatMap((event) => event.workflowExecutionSignaledEventAttributes ?? [])
    expect(signal).toMatchObject([{ signalName: RESUME_SIGNAL }])
    expect(signal[0]?.input?.payloads ?? []).toEqual([])
    expect(events.filter((event) => event.workflowExecutionCancelRequestedEventAttributes)).toHaveLength(1)
    expect(await temporal.readTurnState(turn.turnId)).toBe('running')
    await handleOf('default', turn).terminate()
  })

  it('may have ended, or never have been started', async () => {
    const ended = await startTurn()
    await handleOf('default', ended).terminate()
    const states = [
      [ended, 'closed'],
      [newTurn(), 'unknown'],
    ] as const
    for (const [{ turnId }, state] of states) {
      await temporal.resumeTurn(turnId, 'owner')
      await temporal.cancelTurn(turnId, 'owner')
      expect(await temporal.readTurnState(turnId)).toBe(state)
    }
  })
})

describe('Temporal away', () => {
  it('is distinguished from a turn that does not exist', async () => {
    const temporal = open('default', '127.0.0.1:1')
    const { turnId } = newTurn()
    const asked = [
      temporal.readTurnState(turnId),
      temporal.resumeTurn(turnId, 'owner'),
      temporal.cancelTurn(turnId, 'owner'),
    ]
    for (const { status } of await Promise.allSettled(asked)) expect(status).toBe('rejected')
  })

  it('can be closed while the library retries calls, which then end', async () => {
    const temporal = open('default', '127.0.0.1:1')
    const asked = temporal.resumeTurn(newTurn().turnId, 'owner').catch(() => 'rejected')
    await temporal.close()
    expect(await Promise.race([asked, 'pending'])).toBe('rejected')
  })

  it('includes a namespace that does not exist', async () => {
    const temporal = open(`missing-${randomUUID()}`)
    const { turnId } = newTurn()
    const asked = [
      temporal.readTurnState(turnId),
      temporal.resumeTurn(turnId, 'owner'),
      temporal.cancelTurn(turnId, 'owner'),
    ]
    for (const { status } of await Promise.allSettled(asked)) expect(status).toBe('rejected')
  })
})
