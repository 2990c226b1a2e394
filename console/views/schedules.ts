import type {
  CreateScheduleRequest,
  ScheduleExecutionResponse,
  ScheduleResponse,
  ScheduleTarget,
  UpdateScheduleRequest,
} from 'agent-session-client'
import { readPages, useEvery, useLoad } from '../load.ts'
import { type Field, FieldError, type Values } from '../parts/form.ts'
import { viewOf } from '../parts/list-view.ts'
import { Problem, Quiet } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { type Column, Table } from '../parts/table.ts'
import { Time } from '../parts/time.ts'
import { link } from '../router.ts'
import { api, isAdministrator, workflowAddress } from '../service.ts'
import { html, type VNode } from '../ui.ts'

const MAX_EXECUTIONS = 100
/** Interval between polls of a schedule's executions. */
const LOOK_MS = 3000
const MESSAGE = 'session_message'

const schedules: Resource<ScheduleResponse> = {
  path: 'schedules',
  title: 'Schedules',
  icon: 'schedule',
  one: 'schedule',
  mayWrite: isAdministrator,
  about: 'Send messages to agents at set times, whether anybody is watching or not.',
  list: () => readPages((query) => api.durable.listSchedules(query)),
  get: (id) => api.durable.getSchedule({ schedule_id: id }),
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Schedule', cell: ({ cron_expression, timezone }) => html`<code>${cron_expression}</code> ${timezone}` },
    {
      title: 'Next run',
      cell: ({ enabled, next_trigger_at, disabled_reason, timezone }) =>
        enabled ? html`<${Time} at=${next_trigger_at} zone=${timezone} />` : (disabled_reason ?? 'paused'),
    },
    {
      title: 'Last run',
      cell: ({ last_triggered_at, timezone }) => html`<${Time} at=${last_triggered_at} zone=${timezone} />`,
    },
  ],
  fields: fieldsFor,
  defaults: { timezone: Intl.DateTimeFormat().resolvedOptions().timeZone },
  valuesOf,
  create: async ({ name, ...values }) =>
    api.durable.createSchedule({ name, ...timing(values), target: targetOf(values) } as CreateScheduleRequest),
  update: async (item, changes) => {
    const isTarget = ['agent_id', 'session_id', 'message', 'target'].some((name) => name in changes)
    const target = isTarget ? { target: targetOf({ ...valuesOf(item), ...changes }) } : {}
    const body = { ...timing(changes), ...target } as UpdateScheduleRequest
    return api.durable.updateSchedule({ schedule_id: item.id, ...body })
  },
  actions: [
    {
      label: 'Pause',
      isOffered: ({ enabled }) => enabled,
      run: ({ id }) => api.durable.pauseSchedule({ schedule_id: id }),
    },
    {
      label: 'Resume',
      isOffered: ({ enabled }) => !enabled,
      run: ({ id }) => api.durable.resumeSchedule({ schedule_id: id }),
    },
    {
      label: 'Trigger',
      run: async ({ id }) => {
        await api.durable.triggerSchedule({ schedule_id: id })
        return 'Triggered.'
      },
    },
  ],
  remove: {
    label: 'Delete',
    question: ({ name }) => `Delete the schedule “${name}” and the list of what it has run?`,
    run: ({ id }) => api.durable.deleteSchedule({ schedule_id: id }),
  },
  Detail: ({ item }) => html`
    <section aria-labelledby="next-runs">
      <h2 id="next-runs">Next runs</h2>
      ${item.next_triggers.length === 0 && html`<${Quiet}>${item.enabled ? 'None known yet.' : 'None while paused.'}<//>`}
      <ul>${item.next_triggers.map((at) => html`<li key=${at}><${Time} at=${at} zone=${item.timezone} /></li>`)}</ul>
    </section>
    <${Executions} schedule=${item} />`,
}

export const View = viewOf(schedules)

async function fieldsFor(item: ScheduleResponse | undefined): Promise<Field[]> {
  const { data } = await api.agents.list()
  const agents = data.map(({ id, name }) => ({ value: id, label: name }))
  const { agent_id } = (item?.target.input ?? {}) as MessageInput
  if (agent_id && !agents.some(({ value }) => value === agent_id))
    agents.push({ value: agent_id, label: `${agent_id} (archived)` })
  const saysMessage: Field[] = [
    {
      name: 'agent_id',
      path: 'target.input.agent_id',
      label: 'Agent',
      kind: 'choice',
      options: agents,
      hint: 'Each run starts a new session.',
    },
    {
      name: 'session_id',
      path: 'target.input.session_id',
      label: 'Session',
      kind: 'text',
      hint: 'Id of a session, in place of an agent: each run is a turn there.',
    },
    { name: 'message', path: 'target.input.message', label: 'Message', kind: 'longtext', rows: 4 },
  ]
  return [
    ...(item === undefined ? [{ name: 'name', label: 'Name', kind: 'text' as const, isRequired: true }] : []),
    {
      name: 'cron_expression',
      label: 'Cron expression',
      kind: 'text',
      isRequired: true,
      hint: 'Minute, hour, day of the month, month, day of the week: “0 8 * * 1-5” is 8 o’clock on weekdays.',
    },
    { name: 'timezone', label: 'Time zone', kind: 'text', empty: 'UTC', hint: 'Such as Europe/Berlin. Empty: UTC.' },
    ...(item === undefined || isMessage(item.target) ? saysMessage : []),
    ...(item === undefined || !isMessage(item.target)
      ? [
          {
            name: 'target',
            label: item === undefined ? 'Or another target' : 'Target',
            kind: 'json' as const,
            hint: 'As the API has it: {"type": "activity", "name": "http_request", "input": {"url": …}}.',
          },
        ]
      : []),
    {
      name: 'max_concurrent',
      label: 'Maximum concurrent runs',
      kind: 'number',
      empty: 0,
      hint: 'Runs beyond it are skipped. Empty: no limit.',
    },
    { name: 'catch_up_missed', label: 'Catch up on missed runs', kind: 'boolean' },
    {
      name: 'max_catch_up',
      label: 'Missed runs to catch up on',
      kind: 'number',
      empty: 100,
      hint: 'At most, the newest. Empty: 100.',
    },
    { name: 'description', label: 'Description', kind: 'longtext', rows: 2, empty: '' },
  ]
}

type MessageInput = { agent_id?: string; session_id?: string; message?: unknown }

/** Reports whether the form's own fields can express a target. */
function isMessage({ type, name, input }: ScheduleTarget): boolean {
  return type === 'workflow' && name === MESSAGE && typeof (input as MessageInput | null)?.message === 'string'
}

function valuesOf(item: ScheduleResponse): Values {
  const { description, cron_expression, timezone, catch_up_missed, target } = item
  const max_catch_up = item.max_catch_up ?? 100
  const max_concurrent = item.max_concurrent || null
  const common = { description, cron_expression, timezone, catch_up_missed, max_catch_up, max_concurrent }
  if (!isMessage(target)) return { ...common, target }
  const { agent_id, session_id, message } = target.input as MessageInput
  return { ...common, agent_id, session_id, message }
}

function targetOf({ agent_id, session_id, message, target }: Values): unknown {
  if (target) return target
  if (agent_id && session_id) throw new FieldError('session_id', 'Give an agent or a session, not both.')
  if (!agent_id && !session_id) throw new FieldError('agent_id', 'Choose an agent, or give a session.')
  if (!message) throw new FieldError('message', 'A message is needed.')
  const place = session_id ? { session_id } : { agent_id }
  return { type: 'workflow', name: MESSAGE, input: { ...place, message } }
}

/** Returns the values without the target's. */
const timing = (values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).filter(([name]) => !['agent_id', 'session_id', 'message', 'target'].includes(name)),
  )

const EXECUTIONS: Column<ScheduleExecutionResponse>[] = [
  { title: 'Scheduled for', cell: ({ scheduled_at }) => html`<${Time} at=${scheduled_at} />` },
  { title: 'Status', cell: ({ status }) => status },
  {
    title: 'Duration',
    cell: ({ duration_ms }) => (typeof duration_ms === 'number' ? `${(duration_ms / 1000).toFixed(1)} s` : ''),
  },
  { title: 'Error', cell: ({ error }) => error && html`<span class="problem" dir="auto">${error}</span>` },
]

/** Links to the result of an execution, whose turn has its id, as does the session that it creates for an agent. */
const runOf = ({ target }: ScheduleResponse): Column<ScheduleExecutionResponse> => ({
  title: 'Run',
  cell: ({ id, workflow_id }) => {
    if (!workflow_id) return null
    const digits = id.replaceAll('-', '')
    const { session_id = `session_${digits}` } = (target.input ?? {}) as MessageInput
    const address = workflowAddress(workflow_id)
    return html`<span class="links">
      ${[MESSAGE, 'agent_turn'].includes(target.name) && html`<a href=${link('sessions', session_id)}>session</a> <a href=${link('sessions', session_id, 'turns', `turn_${digits}`)}>timeline</a>`}
      ${address && html` <a href=${address} target="_blank" rel="noopener noreferrer">Temporal</a>`}</span>`
  },
})

/** Executions of a schedule, newest first. */
function Executions({ schedule }: { schedule: ScheduleResponse }): VNode {
  const path = { schedule_id: schedule.id }
  const { value, error, refresh } = useLoad(
    async () => (await api.durable.listExecutions({ ...path, limit: MAX_EXECUTIONS })).data,
    [schedule.id],
  )
  useEvery(LOOK_MS, refresh)
  return html`<section>
    <h2>Past runs</h2>
    <${Problem} error=${error} />
    <${Table} items=${value} keyOf=${({ id }: ScheduleExecutionResponse) => id} columns=${[...EXECUTIONS, runOf(schedule)]} none="Nothing yet." />
  </section>`
}
