import type {
  CreateScheduleRequest,
  ScheduleExecutionResponse,
  ScheduleResponse,
  ScheduleTarget,
  UpdateScheduleRequest,
} from 'agent-session-client'
import { isNotFound, readPages, useEvery, useLoad } from '../../load.ts'
import { Badge } from '../../parts/badge.ts'
import { commandFor } from '../../parts/command.ts'
import { durationOf } from '../../parts/duration.ts'
import { type Field, FieldError, type Values } from '../../parts/form.ts'
import { viewOf } from '../../parts/list-view.ts'
import { notify } from '../../parts/notice.ts'
import { Problem, Quiet } from '../../parts/page.ts'
import type { Resource } from '../../parts/resource.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { scheduleSteps } from '../../parts/use-from-code.ts'
import { link } from '../../router.ts'
import { api, isAdministrator, workflowAddress } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import { inWords } from './cron.ts'
import { CronEntry, ZoneEntry } from './timing.ts'

const MAX_EXECUTIONS = 100
const SHOWN_RUNS = 5
/** Interval between polls of a schedule's executions. */
const LOOK_MS = 3000
const MESSAGE = 'session_message'
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Reports whether nothing is to be said about why a schedule does not run. */
const isPlain = (reason: string | null | undefined): boolean => !reason || /^(paused|created disabled)$/.test(reason)

const StateBadge = ({ schedule: { enabled, disabled_reason } }: { schedule: ScheduleResponse }): VNode =>
  html`<span title=${disabled_reason ?? ''}><${Badge} status=${enabled ? 'enabled' : isPlain(disabled_reason) ? 'paused' : 'disabled'} /></span>`

const schedules: Resource<ScheduleResponse> = {
  path: 'schedules',
  title: 'Schedules',
  icon: 'schedule',
  one: 'schedule',
  mayWrite: isAdministrator,
  about: 'Send messages to agents at set times, whether anybody is watching or not.',
  example: () =>
    commandFor('/v1/durable/schedules', {
      name: 'Morning report',
      cron_expression: '0 8 * * 1-5',
      timezone: ZONE,
      target: { type: 'workflow', name: MESSAGE, input: { agent_id: 'agent_…', message: 'Write the report.' } },
    }),
  list: () => readPages((query) => api.durable.listSchedules(query)),
  get: (id) => api.durable.getSchedule({ schedule_id: id }),
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    {
      title: 'Runs',
      cell: ({ cron_expression, timezone }) =>
        html`${inWords(cron_expression) ?? html`<code>${cron_expression}</code>`} <span class="quiet">${timezone}</span>`,
    },
    { title: 'Status', cell: (schedule) => html`<${StateBadge} schedule=${schedule} />` },
    {
      title: 'Next run',
      cell: ({ enabled, next_trigger_at }) => enabled && html`<${Time} at=${next_trigger_at} />`,
    },
    { title: 'Last run', cell: ({ last_triggered_at }) => html`<${Time} at=${last_triggered_at} />` },
  ],
  badge: (schedule) => html`<${StateBadge} schedule=${schedule} />`,
  facts: ({ cron_expression, timezone, disabled_reason }) => [
    `${inWords(cron_expression) ?? cron_expression}, ${timezone}`,
    !isPlain(disabled_reason) && disabled_reason,
  ],
  steps: ({ id }) => scheduleSteps(id),
  fields: fieldsFor,
  defaults: { timezone: ZONE },
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
      icon: 'pause',
      isOffered: ({ enabled }) => enabled,
      run: ({ id }) => api.durable.pauseSchedule({ schedule_id: id }),
    },
    {
      label: 'Resume',
      icon: 'play',
      isOffered: ({ enabled }) => !enabled,
      run: ({ id }) => api.durable.resumeSchedule({ schedule_id: id }),
    },
    {
      label: 'Trigger',
      icon: 'play',
      run: trigger,
    },
  ],
  remove: {
    label: 'Delete',
    question: ({ name }) => `Delete the schedule “${name}” and the list of its runs?`,
    run: ({ id }) => api.durable.deleteSchedule({ schedule_id: id }),
  },
  Detail: ({ item }) => html`
    <section aria-labelledby="next-runs">
      <h2 id="next-runs">Next runs</h2>
      ${item.next_triggers.length === 0 && html`<${Quiet}>${item.enabled ? 'They are computed in a moment.' : 'None while paused.'}<//>`}
      <ul>${item.next_triggers.slice(0, SHOWN_RUNS).map((at) => html`<li key=${at}><${Time} at=${at} zone=${item.timezone} /></li>`)}</ul>
    </section>
    <${Executions} schedule=${item} />`,
}

export const View = viewOf(schedules)

/** Time for which the run of a triggered schedule is waited for. */
const RUN_MS = 20_000
const POLL_MS = 400

/** Triggers a schedule, and links to the run once it has begun. */
async function trigger({ id, name }: ScheduleResponse): Promise<void> {
  const { execution_id } = await api.durable.triggerSchedule({ schedule_id: id })
  const until = Date.now() + RUN_MS
  while (Date.now() < until) {
    const run = await api.durable.getExecution({ execution_id }).catch((error: unknown) => {
      // It is recorded a moment later.
      if (!isNotFound(error)) throw error
    })
    if (run?.session_id && run.turn_id) {
      const href = link('sessions', run.session_id, 'turns', run.turn_id)
      return notify(`“${name}” was triggered.`, { text: 'Open the run', href })
    }
    if (run?.status === 'failed' || run?.status === 'skipped')
      throw new Error(run.error ?? `The run was ${run.status}.`)
    if (run?.status === 'completed') break
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  notify(`“${name}” was triggered.`)
}

async function fieldsFor(item: ScheduleResponse | undefined): Promise<Field[]> {
  const saysMessage: Field[] = [
    {
      name: 'agent_id',
      path: 'target.input.agent_id',
      label: 'Agent',
      kind: 'agent',
      none: 'Choose an agent',
      hint: 'Each run starts a new session with it.',
    },
    {
      name: 'session_id',
      path: 'target.input.session_id',
      label: 'Session',
      kind: 'session',
      none: 'Choose a session',
      hint: 'In place of an agent: each run is another turn of this session.',
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
      Entry: CronEntry,
      hint: 'Minute, hour, day of the month, month, day of the week.',
    },
    { name: 'timezone', label: 'Time zone', kind: 'text', empty: 'UTC', Entry: ZoneEntry },
    ...(item === undefined || isMessage(item.target) ? saysMessage : []),
    ...(item === undefined || !isMessage(item.target)
      ? [
          {
            name: 'target',
            label: item === undefined ? 'Another target' : 'Target',
            kind: 'json' as const,
            isMore: item === undefined,
            hint: 'In place of a message: {"type": "activity", "name": "http_request", "input": {"url": "https://…"}}.',
          },
        ]
      : []),
    {
      name: 'max_concurrent',
      label: 'Maximum concurrent runs',
      kind: 'number',
      empty: 0,
      isMore: true,
      hint: 'Further runs are skipped. Empty: no limit.',
    },
    {
      name: 'catch_up_missed',
      label: 'Catch up on missed runs',
      kind: 'boolean',
      isMore: true,
      hint: 'When the service was down at the time of a run.',
    },
    {
      name: 'max_catch_up',
      label: 'Most missed runs to catch up on',
      kind: 'number',
      empty: 100,
      isMore: true,
      hint: 'The newest ones. Empty: 100.',
    },
    { name: 'description', label: 'Description', kind: 'longtext', rows: 2, empty: '', isMore: true },
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
  if (agent_id && session_id) throw new FieldError('session_id', 'Choose either an agent or a session.')
  if (!agent_id && !session_id) throw new FieldError('agent_id', 'Choose an agent or a session.')
  if (!message) throw new FieldError('message', 'Enter a message.')
  const place = session_id ? { session_id } : { agent_id }
  return { type: 'workflow', name: MESSAGE, input: { ...place, message } }
}

/** Returns the values without the target's. */
const timing = (values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).filter(([name]) => !['agent_id', 'session_id', 'message', 'target'].includes(name)),
  )

const executionColumns = (zone: string): Column<ScheduleExecutionResponse>[] => [
  { title: 'Scheduled for', cell: ({ scheduled_at }) => html`<${Time} at=${scheduled_at} zone=${zone} />` },
  { title: 'Status', cell: ({ status }) => html`<${Badge} status=${status} />` },
  {
    title: 'Duration',
    isNumber: true,
    cell: ({ duration_ms }) => (typeof duration_ms === 'number' ? durationOf(duration_ms) : ''),
  },
  { title: 'Error', cell: ({ error }) => error && html`<span class="problem" dir="auto">${error}</span>` },
]

/** Links to the turn of an execution. */
const RUN: Column<ScheduleExecutionResponse> = {
  title: 'Run',
  cell: ({ session_id, turn_id, workflow_id }) => {
    const address = workflow_id && workflowAddress(workflow_id)
    return html`<span class="links">
      ${session_id && html`<a href=${link('sessions', session_id)}>session</a>`}
      ${session_id && turn_id && html` <a href=${link('sessions', session_id, 'turns', turn_id)}>timeline</a>`}
      ${address && html` <a href=${address} target="_blank" rel="noopener noreferrer">Temporal</a>`}</span>`
  },
}

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
    <${Table} items=${value} keyOf=${({ id }: ScheduleExecutionResponse) => id} columns=${[...executionColumns(schedule.timezone), RUN]} none="No runs yet." />
  </section>`
}
