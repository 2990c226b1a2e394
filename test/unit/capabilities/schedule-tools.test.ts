import type { NewSessionSchedule, SessionSchedules } from '../../../domain/tools/capabilities/session-schedules.ts'
import { runTool } from './run-tool.ts'

/** Schedules in memory, which keep what they are given. */
function createMemorySchedules() {
  const made: NewSessionSchedule[] = []
  const shown = (wanted: NewSessionSchedule) => ({ ...wanted, enabled: true, next_run: null })
  const schedules: SessionSchedules = {
    create: async (wanted) => {
      made.push(wanted)
      return shown(wanted)
    },
    list: async () => made.map(shown),
    delete: async (name) => ({ deleted: made.some((one) => one.name === name) }),
  }
  return { made, schedules }
}

const report = { name: 'report', message: 'Report.' }

describe('arguments of create_schedule', () => {
  it.each<[object, string | RegExp]>([
    [{ message: 'x', cron: '* * * * *' }, /name is required/],
    [{ name: 'x', cron: '* * * * *' }, /message is required/],
    [{ ...report, name: '', cron: '* * * * *' }, /name.*must NOT have fewer than 1/],
    [{ ...report, name: 'é'.repeat(256), cron: '* * * * *' }, /name.*must NOT have more than 255/],
    [{ ...report, message: '', cron: '* * * * *' }, /message.*must NOT have fewer than 1/],
    [{ ...report, cron: '* '.repeat(600) }, /cron.*must NOT have more than 1024/],
    [{ ...report, cron: '* * * * *', every: 5 }, /every/],
    [{ ...report, cron: 5 }, /cron.*must be string/],
    [report, 'create_schedule needs exactly one of cron and at.'],
    [{ ...report, cron: '* * * * *', at: '2030-01-01T00:00:00Z' }, 'create_schedule needs exactly one of cron and at.'],
  ])('%j are refused with a sentence', async (args, error) => {
    const { made, schedules } = createMemorySchedules()
    await expect(runTool('create_schedule', { ...args }, { schedules })).rejects.toThrow(error)
    expect(made).toEqual([])
  })

  it('are taken with cron or at, in UTC unless there is a time zone', async () => {
    const { made, schedules } = createMemorySchedules()
    const cron = { ...report, cron: '0 9 * * *' }
    const at = { ...report, at: '2030-01-01T00:00:00', timezone: 'Europe/Berlin' }
    expect(await runTool('create_schedule', cron, { schedules })).toEqual({
      ...{ name: 'report', cron: '0 9 * * *', timezone: 'UTC', enabled: true, next_run: null },
    })
    await runTool('create_schedule', at, { schedules })
    expect(made).toEqual([{ ...cron, timezone: 'UTC' }, at])
  })
})

it('schedules are listed with their messages, and deleted by name', async () => {
  const { schedules } = createMemorySchedules()
  await runTool('create_schedule', { ...report, cron: '0 9 * * *' }, { schedules })
  expect(await runTool('list_schedules', {}, { schedules })).toMatchObject({ schedules: [report] })
  expect(await runTool('delete_schedule', { name: 'report' }, { schedules })).toEqual({ name: 'report', deleted: true })
  expect(await runTool('delete_schedule', { name: 'other' }, { schedules })).toEqual({ name: 'other', deleted: false })
})
