import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { SchemaJob } from '../../../domain/tools/capabilities/arguments/schema-worker.ts'
import { createThreadPool } from '../../../lib/threads/pool.ts'

/** Creates a pool that runs the program for schemas, whose jobs may take any length of time. */
const createPool = (more: object = {}) =>
  createThreadPool<SchemaJob, string | undefined>({
    file: new URL('../../../domain/tools/capabilities/arguments/schema-worker.ts', import.meta.url),
    maxThreads: 1,
    waitMs: 10_000,
    resourceLimits: { maxOldGenerationSizeMb: 64 },
    ...more,
  })
const QUICK: SchemaJob = { schemas: [{}, { type: 'array' }] }
const ENDLESS: SchemaJob = {
  calls: [
    { schema: {}, args: '{}' },
    { schema: { propertyNames: { pattern: '^(a+)+$' } }, args: `{"${'a'.repeat(100)}!":1}` },
  ],
}
const DONE = { answers: [undefined, 'type must be "object" at the top'], end: 'done', cpuMs: expect.any(Number) }

/** Watches the threads of all pools; an earlier test's threads may end at any time. */
function watchThreads(): { latest(): unknown; ended(): unknown[] } {
  const post = jest.spyOn(Worker.prototype, 'postMessage')
  const terminate = jest.spyOn(Worker.prototype, 'terminate')
  return { latest: () => post.mock.contexts.at(-1), ended: () => terminate.mock.contexts }
}

describe('a pool of threads', () => {
  afterEach(() => jest.restoreAllMocks())

  it('returns what a job produced by its time limit, and continues with another thread', async () => {
    const pool = createPool()
    expect(await pool.run(QUICK, 5000)).toEqual(DONE)
    expect(await pool.run(ENDLESS, 200)).toEqual({ answers: [undefined], end: 'late', cpuMs: 0 })
    expect(await pool.run(QUICK, 5000)).toEqual(DONE)
  })

  it('blames no job for time that the machine did not give its thread', async () => {
    const pool = createThreadPool<number, string>({
      file: new URL('./waiting-worker.ts', import.meta.url),
      ...{ maxThreads: 1, waitMs: 10_000, resourceLimits: {} },
    })
    expect(await pool.run(1500, 300)).toMatchObject({ answers: ['timed-out'], end: 'done' })
    expect(await pool.run(60_000, 100)).toMatchObject({ answers: [], end: 'busy' })
    await pool.close()
  })

  it('does not keep a thread that it ended while the report of its job was on the way', async () => {
    const pool = createPool()
    await pool.run(QUICK, 5000)
    const caller = new AbortController()
    const { postMessage } = Worker.prototype
    jest.spyOn(Worker.prototype, 'postMessage').mockImplementationOnce(function (this: Worker, ...job) {
      postMessage.apply(this, job)
      // The thread reports the end of the job meanwhile, and the report waits behind this.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
      caller.abort('left')
    })
    expect(await pool.run(QUICK, 5000, caller.signal).catch((reason) => reason)).toBe('left')
    expect(await pool.run(QUICK, 5000)).toEqual(DONE)
    await pool.close()
  })

  it('counts the time of a job from when a thread has it', async () => {
    const pool = createPool({ waitMs: 60_000 })
    const ends = await Promise.all([pool.run(ENDLESS, 900), pool.run(QUICK, 600), pool.run(ENDLESS, 200)])
    expect(ends.map(({ end }) => end)).toEqual(['late', 'done', 'late'])
  })

  it('keeps the order of arrival, also when one comes as another ends', async () => {
    const pool = createPool()
    const order: string[] = []
    const run = (name: string, job: SchemaJob) => pool.run(job, 300).then(() => order.push(name))
    const first = run('first', ENDLESS)
    const others = ['second', 'third'].map((name) => run(name, QUICK))
    await first.then(() => Promise.all([run('newcomer', QUICK), ...others]))
    expect(order).toEqual(['first', 'second', 'third', 'newcomer'])
  })

  it('refuses a job that would wait too long or exceeds the queue', async () => {
    const pool = createPool({ waitMs: 100 })
    const running = pool.run(ENDLESS, 400)
    const waiting = await Promise.all(Array.from({ length: 510 }, () => pool.run(QUICK, 1000)))
    expect(waiting).toEqual(Array(510).fill({ answers: [], end: 'busy', cpuMs: 0 }))
    expect((await running).end).toBe('late')
    expect(await pool.run(QUICK, 5000)).toEqual(DONE)
  })

  it('serves owners in turn, none of them with all threads, and urgent jobs first', async () => {
    const pool = createPool({ maxThreads: 2 })
    const order: string[] = []
    const run = (owner: string, job: SchemaJob, isUrgent = false) =>
      pool
        .run(job, 300, undefined, { owner, isUrgent })
        .then(({ end }) => order.push(isUrgent ? `${owner}!` : owner, end))
    const flood = Array.from({ length: 4 }, () => run('flooding', ENDLESS))
    await run('other', QUICK)
    expect(order).toEqual(['other', 'done'])
    const quick = ['a', 'a', 'b'].map((owner) => run(owner, QUICK))
    await Promise.all([...quick, run('b', QUICK, true)])
    expect(order.filter((entry) => /^(a|b)/.test(entry))).toEqual(['a', 'b!', 'a', 'b'])
    await Promise.all(flood)
  })

  it('lets one owner queue only some jobs', async () => {
    const pool = createPool({ waitMs: 300 })
    const endings: string[] = []
    const running = pool.run(ENDLESS, 400, undefined, { owner: 'flooding' })
    const flood = Array.from({ length: 101 }, () =>
      pool.run(QUICK, 1000, undefined, { owner: 'flooding' }).then(({ end }) => endings.push(end)),
    )
    await flood.at(-1)
    expect(endings).toEqual(['busy'])
    await Promise.all([running, ...flood])
  })

  it('ends a job when it is aborted, before it starts, waiting or running', async () => {
    const pool = createPool()
    const caller = new AbortController()
    const jobs = Array.from({ length: 3 }, () => pool.run(ENDLESS, 10_000, caller.signal))
    setTimeout(() => caller.abort(new Error('cancelled')), 300)
    const ends = await Promise.allSettled([...jobs, jobs[0]?.catch(() => pool.run(QUICK, 1000, caller.signal))])
    expect(ends).toEqual(Array(4).fill({ status: 'rejected', reason: new Error('cancelled') }))
    expect(await pool.run(QUICK, 5000)).toEqual(DONE)
  })

  it('survives a thread without memory and a job that cannot be sent', async () => {
    const pool = createPool({ resourceLimits: { maxOldGenerationSizeMb: 24 } })
    const schema = { properties: { x: { items: { type: 'string' } } } }
    const hungry: SchemaJob = { calls: [{ schema, args: JSON.stringify({ x: Array(600_000).fill(1) }) }] }
    expect(await pool.run(hungry, 20_000)).toEqual({ answers: [], end: 'broken', cpuMs: 0 })
    let deep: Record<string, unknown> = {}
    for (let level = 0; level < 200_000; level++) deep = { not: deep }
    expect(await pool.run({ schemas: [deep] }, 5000)).toEqual({ answers: [], end: 'broken', cpuMs: 0 })
    expect(await pool.run(QUICK, 5000)).toEqual(DONE)
  })

  it('rejects when it has no program to run, each time', async () => {
    const pool = createPool({ file: new URL('./no-such-program.ts', import.meta.url) })
    for (let time = 0; time < 3; time++) await expect(pool.run(QUICK, 1000)).rejects.toThrow('no-such-program')
  })

  it('ends a thread that is idle when it is closed', async () => {
    const threads = watchThreads()
    const pool = createPool()
    await pool.run(QUICK, 5000)
    const own = threads.latest()
    expect(threads.ended()).not.toContain(own)
    await pool.close()
    expect(threads.ended()).toContain(own)
  })

  it('lets running jobs end when it is closed, and then their threads', async () => {
    const threads = watchThreads()
    const pool = createPool()
    const running = pool.run(QUICK, 5000)
    await pool.close()
    expect(await running).toEqual(DONE)
    expect(threads.ended()).toContain(threads.latest())
  })

  it('does not keep a process alive', async () => {
    const fileOf = (name: string) =>
      JSON.stringify(new URL(`../../../domain/tools/capabilities/arguments/${name}.ts`, import.meta.url).href)
    const program = `Promise.all([import(${fileOf('check')}), import(${fileOf('threads')})])
      .then(([check, threads]) => check.checkSchemas(threads.createSchemaThreads(), [{ type: 'array' }])).then(console.log)`
    const cwd = fileURLToPath(new URL('../../..', import.meta.url))
    const stdio = ['ignore', 'pipe', 'inherit'] as const
    const child = spawn(process.execPath, ['-e', program], { cwd, stdio: [...stdio] })
    let output = ''
    child.stdout?.on('data', (data) => {
      output += data
    })
    const startedAt = performance.now()
    const [code] = await once(child, 'exit')
    expect([code, output]).toEqual([0, expect.stringContaining('type must be "object"')])
    // An idle thread would be kept for half a minute.
    expect(performance.now() - startedAt).toBeLessThan(25_000)
  })
})
