import { newUuid } from '../../domain/kit/ids.ts'
import { type Answer, call, type Json } from './http.ts'
import type { Organization } from './shared/service.ts'

export const SCHEDULES = '/v1/durable/schedules'
export const YEARLY = '0 0 1 1 *'
export const NOOP = { type: 'activity', name: 'noop' }
export const HOOK = 'https://hooks.example/a?b=1'

/** Returns the target that sends a request, by default to HOOK. */
export const request = (input: object) => ({ type: 'activity', name: 'http_request', input: { url: HOOK, ...input } })

/** Returns the target that posts a message. */
export const message = (input: object) => ({ type: 'workflow', name: 'session_message', input })

/** Returns the id of the schedule at a path. */
export const uuidOf = (path: string): string => path.slice(SCHEDULES.length + 1)

/** Calls in an organization, which may be another one for each test. Schedules are named by their paths. */
export type ScheduleCalls = {
  /** Requests a schedule that does nothing each year, but for what is given. */
  add(more?: object): Promise<Answer>
  /** Creates a schedule as `add` does, and returns its path. */
  addSchedule(more?: object): Promise<string>
  /** Returns the body of an answer. */
  read(path: string): Promise<Json>
  patch(path: string, body: object): Promise<Answer>
  /** Returns the row of a schedule as Postgres has it. */
  rowOf(path: string): Promise<Json>
}

export function scheduleCalls(api: () => Organization): ScheduleCalls {
  const add = (more: object = {}) =>
    call(api(), 'POST', SCHEDULES, { name: newUuid(), cron_expression: YEARLY, target: NOOP, ...more })
  return {
    add,
    addSchedule: async (more) => {
      const { status, body } = await add(more)
      if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
      return `${SCHEDULES}/${body.id}`
    },
    read: async (path) => (await call(api(), 'GET', path)).body,
    patch: (path, body) => call(api(), 'PATCH', path, body),
    rowOf: async (path) => (await api().query('SELECT * FROM schedules WHERE id = $1', [uuidOf(path)]))[0],
  }
}
