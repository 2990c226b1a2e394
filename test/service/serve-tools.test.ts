import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type ClientProject, installClient } from '../support/client-package.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { addressOf, call, type Json, listEvents, modelId, waitFor, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'
import { callsOf, cancel, clientTool, getTurn, post, postAndAsk, waitForEvent } from '../support/turns.ts'

let project: ClientProject
let service: TestService
beforeAll(async () => {
  ;[project, service] = await Promise.all([installClient(), startService()])
})
afterAll(async () => {
  await service.stop()
  await project.remove()
})
afterEach(() => {
  service.platform.deps.limits.toolCallLeaseMs = 30_000
})

const NAMES = ['a', 'b', 'c']

/** Creates an agent whose model calls these tools of the client in its first step. */
async function createAgent(names = NAMES): Promise<string> {
  const script = JSON.stringify([{ tool_calls: callsOf(...names) }, { text: 'done' }])
  const { body } = await call(service.url, 'POST', '/v1/agents', {
    name: 'Served',
    system_prompt: `\`\`\`llmsim\n${script}\n\`\`\``,
    default_model_id: await modelId(service.url, 'llmsim-script'),
    tools: NAMES.map((name) => clientTool(name)),
  })
  return body.id
}
const createSession = async (agent_id: string): Promise<string> =>
  (await call(service.url, 'POST', '/v1/sessions', { agent_id })).body.id

/** Serves tools until the returned function is called, which returns what the program has thrown. */
function serve(agentId: string, tools: Json, { url = service.url, ...more }: Json = {}) {
  const controller = new AbortController()
  const client = project.exports.createClient({ baseUrl: url })
  const served = client.serveTools({ agentId, tools, ...more, signal: controller.signal })
  return async () => {
    controller.abort()
    await served
  }
}
const toolsOf = (run: (args: Json, call: Json) => unknown, names = NAMES) =>
  Object.fromEntries(names.map((name) => [name, run]))
const resultsOf = (events: Json[]): Json[] =>
  events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
const never = () => new Promise(() => {})

describe('serveTools', () => {
  it('has each of many calls run once by one of two programs, also over a bad connection', async () => {
    const faults = [
      { status: 503, retryAfter: 0 },
      { after: 0, how: 'cut' },
      undefined,
      { after: 300, how: 'end' },
    ] as const
    const proxy = await startFaultyProxy(service.url, (_, number) => faults[number % faults.length])
    const [agent, other] = [await createAgent(), await createAgent()]
    const notServed = await createSession(other)
    await post(service.url, notServed)
    const early = await createSession(agent)
    await postAndAsk(service.url, early)
    const runs: string[] = []
    const programs: number[] = []
    const both = Promise.withResolvers<void>()
    const run =
      (program: number) =>
      async (_: Json, { session_id, id }: Json) => {
        runs.push(`${session_id} ${id}`)
        programs.push(program)
        // The other one has a worse connection, and time to come.
        if (program === 1) both.resolve()
        await Promise.race([both.promise, new Promise((resolve) => setTimeout(resolve, 1000))])
        await new Promise((resolve) => setTimeout(resolve, 20))
        return `result of ${id}`
      }
    const ends = [
      serve(agent, toolsOf(run(0)), { concurrency: 3 }),
      serve(agent, toolsOf(run(1)), { concurrency: 3, url: addressOf(proxy.target) }),
    ]
    const sessions = [early, ...(await Promise.all(Array.from({ length: 9 }, () => createSession(agent))))]
    await Promise.all(sessions.slice(1).map((id) => post(service.url, id)))
    for (const id of sessions) {
      const results = resultsOf(await waitUntilIdle(service.url, id))
      expect(results.map(({ tool_call_id, status }) => `${tool_call_id} ${status}`).sort()).toEqual(
        NAMES.map((name) => `${name} success`),
      )
    }
    for (const end of ends) await end()
    await proxy.close()
    expect(runs.toSorted()).toEqual(sessions.flatMap((id) => NAMES.map((name) => `${id} ${name}`)).sort())
    expect(new Set(programs)).toEqual(new Set([0, 1]))
    expect((await call(service.url, 'GET', `/v1/sessions/${notServed}`)).body.status).toBe('waitingfortoolresults')
  })

  it('takes over the call of a program that was killed, once the lease is over', async () => {
    service.platform.deps.limits.toolCallLeaseMs = 1500
    const agent = await createAgent(['a'])
    const file = path.join(project.folder, 'served.ts')
    await writeFile(
      file,
      `import { createClient } from 'agent-session-client'
       const run = (_args: unknown, { id }: { id: string }) => (console.log(id), new Promise(() => setInterval(() => {}, 1000)))
       await createClient({ baseUrl: '${service.url}' }).serveTools({ agentId: '${agent}', tools: { a: run } })`,
    )
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const id = await createSession(agent)
    await post(service.url, id)
    await once(child.stdout, 'data')
    const runs: string[] = []
    const end = serve(
      agent,
      toolsOf((_, { id: one }) => runs.push(one)),
    )
    child.kill('SIGKILL')
    await waitUntilIdle(service.url, id)
    await end()
    expect(runs).toEqual(['a'])
  })

  it('makes errors results, and leaves unknown tools to others', async () => {
    const agent = await createAgent(['a', 'b', 'c'])
    const tools = {
      a: () => {
        throw new Error('It is broken')
      },
      b: () => 1n,
    }
    const end = serve(agent, tools)
    const id = await createSession(agent)
    await post(service.url, id)
    const events = await waitForEvent(service.url, id, 'tool.completed', 2)
    expect(
      resultsOf(events)
        .map(({ tool_call_id, error }) => [tool_call_id, error])
        .sort(),
    ).toEqual([
      ['a', 'It is broken'],
      ['b', expect.stringMatching(/BigInt/)],
    ])
    const taken = await call(service.url, 'POST', `/v1/sessions/${id}/tool-calls/c/lease`, { holder: 'other' })
    expect(taken.status).toBe(200)
    await end()
  })

  it('aborts a call that is cancelled, and a call whose lease another holder has', async () => {
    service.platform.deps.limits.toolCallLeaseMs = 5000
    const agent = await createAgent(['a'])
    const aborted: string[] = []
    const running: string[] = []
    const run = async (_: Json, { session_id, signal }: Json) => {
      running.push(session_id)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      aborted.push(session_id)
      return 'too late'
    }
    const end = serve(agent, toolsOf(run))
    const [first, second] = [await createSession(agent), await createSession(agent)]
    for (const id of [first, second]) await post(service.url, id)
    await waitFor(async () => running.length === 2, 'both calls to run')
    const turn = (await call(service.url, 'GET', `/v1/sessions/${second}/turns`)).body.data[0]
    const where = { turnId_toolCallId: { turnId: toUuid(turn.id), toolCallId: 'a' } }
    const { toolCallLease } = service.platform.deps.db
    const { holder, expiresAt } = await toolCallLease.findUniqueOrThrow({ where })
    const isRenewed = async () => (await toolCallLease.findUniqueOrThrow({ where })).expiresAt > expiresAt
    await waitFor(isRenewed, 'the lease to be renewed')
    await cancel(service.url, first)
    await waitFor(async () => aborted.includes(first), 'the cancelled call to be aborted')
    const other = { holder: `not ${holder}`, expiresAt: new Date(Date.now() + 3_600_000) }
    await toolCallLease.update({ where, data: other })
    await waitFor(async () => aborted.includes(second), 'the lost call to be aborted')
    await end()
    expect(resultsOf(await listEvents(service.url, second))).toEqual([])
    expect((await getTurn(service.url, second, turn.id)).pending_tool_calls).toHaveLength(1)
  })

  it('lets others have its calls when it ends, and throws what no retry can cure', async () => {
    const agent = await createAgent(['a'])
    const id = await createSession(agent)
    const running = Promise.withResolvers<void>()
    const end = serve(
      agent,
      toolsOf(() => [running.resolve(), never()][1]),
    )
    await post(service.url, id)
    await running.promise
    const take = () => call(service.url, 'POST', `/v1/sessions/${id}/tool-calls/a/lease`, { holder: 'other' })
    expect((await take()).status).toBe(409)
    await end()
    expect((await take()).status).toBe(200)
    await expect(serve('agent_of_nobody', {})()).resolves.toBe(undefined)
    const client = project.exports.createClient({ baseUrl: service.url })
    await expect(client.serveTools({ agentId: 'agent_of_nobody', tools: {} })).rejects.toMatchObject({ status: 400 })
  })

  it('follows with a client through a bad connection: each event once', async () => {
    const faults = [undefined, { after: 600, how: 'cut' }, { status: 500 }, { after: 0, how: 'cut' }] as const
    const proxy = await startFaultyProxy(service.url, (_, number) => faults[number % faults.length])
    const agent = await createAgent(['a'])
    const client = project.exports.createClient({ baseUrl: addressOf(proxy.target) })
    const begun = Promise.withResolvers<void>()
    const events = client.followEvents({ agent_id: agent, types: ['turn.waiting'], onBegin: begun.resolve })
    const read: string[] = []
    const reading = (async () => {
      for await (const event of events) if (read.push(event.session_id) === 8) return
    })()
    await begun.promise
    const sessions = await Promise.all(Array.from({ length: 8 }, () => createSession(agent)))
    for (const id of sessions) await post(service.url, id)
    await reading
    await proxy.close()
    expect(read.toSorted()).toEqual(sessions.toSorted())
  })
})
