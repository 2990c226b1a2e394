import { checkSchemas } from '../../../domain/tools/capabilities/arguments/check.ts'
import { createSchemaThreads } from '../../../domain/tools/capabilities/arguments/threads.ts'
import { builtinCapabilities } from '../../../domain/tools/capabilities/builtin/registry.ts'
import { ToolError } from '../../../domain/tools/capabilities/capability.ts'
import { runTool } from './run-tool.ts'

const threads = createSchemaThreads()

describe('the registry', () => {
  const tools = builtinCapabilities.flatMap((capability) => capability.tools)

  it('has each id and each tool name once', () => {
    const ids = builtinCapabilities.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length)
  })

  it('has dependencies that exist', () => {
    const ids = builtinCapabilities.map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(builtinCapabilities.flatMap(({ dependencies }) => dependencies)))
  })

  it('has schemas that can be checked and names that providers take', async () => {
    expect(
      await checkSchemas(
        threads,
        tools.map(({ parameters }) => parameters),
      ),
    ).toEqual(tools.map(() => undefined))
    for (const { name } of tools) expect(name).toMatch(/^[a-z_]{1,64}$/)
  })
})

describe('get_current_time', () => {
  it('tells the time in UTC when no zone is named', async () => {
    const before = Date.now()
    const value = (await runTool('get_current_time', {})) as Record<string, string>
    expect(value.timezone).toBe('UTC')
    expect(value.local_time).toBe(value.utc_time?.replace(/\.\d{3}Z$/, '+00:00'))
    expect(Date.parse(value.utc_time ?? '')).toBeGreaterThanOrEqual(before)
    expect(Date.parse(value.utc_time ?? '')).toBeLessThanOrEqual(Date.now())
  })

  it('tells the time of a zone with its offset', async () => {
    const value = (await runTool('get_current_time', { timezone: 'Asia/Kathmandu' })) as Record<string, string>
    expect(value.local_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+05:45$/)
    expect(Math.abs(Date.parse(value.local_time ?? '') - Date.parse(value.utc_time ?? ''))).toBeLessThan(1000)
    const shifted = new Date(Date.parse(value.utc_time ?? '') + (5 * 60 + 45) * 60_000)
    expect(value.weekday).toBe(
      ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'][shifted.getUTCDay()],
    )
  })

  it('reports an unknown zone to the model', async () => {
    const failure = runTool('get_current_time', { timezone: 'Mars/Olympus' })
    await expect(failure).rejects.toThrow(
      new ToolError('There is no time zone "Mars/Olympus"; use an IANA name such as "Europe/Berlin" or "UTC".'),
    )
    await expect(failure).rejects.toBeInstanceOf(ToolError)
  })
})

describe('write_todos', () => {
  it('returns the given list', async () => {
    const todos = [
      { content: 'Read', status: 'completed' },
      { content: 'Write', status: 'in_progress' },
      { content: 'Send', status: 'pending' },
    ]
    expect(await runTool('write_todos', { todos })).toEqual({ todos })
    expect(await runTool('write_todos', { todos: [] })).toEqual({ todos: [] })
  })

  it.each([
    ['an unknown status', { todos: [{ content: 'a', status: 'done' }] }, 'todos.0.status must be one of'],
    ['an item without content', { todos: [{ status: 'pending' }] }, 'todos.0.content is required'],
    ['an empty item', { todos: [{ content: '', status: 'pending' }] }, 'todos.0.content'],
    ['no list', {}, 'todos is required'],
  ])('refuses %s', async (_, args, sentence) => {
    await expect(runTool('write_todos', args)).rejects.toThrow(sentence)
  })

  it('is explained in the prompt', () => {
    const list = builtinCapabilities.find(({ id }) => id === 'stateless_todo_list')
    expect(list?.systemPrompt).toContain('write_todos')
  })
})

describe('the math tools', () => {
  it.each([
    ['add', 5],
    ['subtract', 1],
    ['multiply', 6],
    ['divide', 1.5],
  ])('%s', async (name, result) => {
    expect(await runTool(name, { a: 3, b: 2 })).toEqual({ result })
  })

  it('report to the model what cannot be calculated', async () => {
    const byZero = runTool('divide', { a: 1, b: 0 })
    await expect(byZero).rejects.toBeInstanceOf(ToolError)
    await expect(byZero).rejects.toThrow('divided by zero')
    await expect(runTool('multiply', { a: 1e308, b: 10 })).rejects.toThrow('too large')
    await expect(runTool('add', { a: '1', b: 2 })).rejects.toThrow('a must be number')
  })
})

describe('the weather tools', () => {
  it('have the same simulated weather for a place each time, and a different one elsewhere', async () => {
    const first = await runTool('get_weather', { location: 'Lisbon' })
    expect(first).toMatchObject({ location: 'Lisbon', simulated: true, temperature_celsius: expect.any(Number) })
    expect(await runTool('get_weather', { location: 'Lisbon' })).toEqual(first)
    expect(await runTool('get_weather', { location: 'Oslo' })).not.toMatchObject({
      ...(first as object),
      location: 'Oslo',
    })
  })

  it('forecast as many days as are asked for', async () => {
    const days = async (args: object) =>
      ((await runTool('get_forecast', { location: 'Lisbon', ...args })) as { forecast: { day: number }[] }).forecast
    expect((await days({})).map(({ day }) => day)).toEqual([1, 2, 3])
    const week = await days({ days: 7 })
    expect(week).toHaveLength(7)
    expect(week.slice(0, 3)).toEqual(await days({}))
    await expect(days({ days: 8 })).rejects.toThrow('days must be <= 7')
  })
})
