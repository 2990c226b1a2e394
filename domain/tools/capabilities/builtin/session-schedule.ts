import { type Capability, type Tool, ToolError } from '../capability.ts'

const TOOL_MS = 30_000

const nameSchema = (description: string) => ({ type: 'string', minLength: 1, maxLength: 255, description })

const createSchedule: Tool = {
  name: 'create_schedule',
  displayName: 'Create a schedule',
  description:
    'Posts a message in this session later: repeatedly with "cron", or once with "at". You answer it then, as you answer its user, so write into it all that you will have to know. Give exactly one of cron and at.',
  parameters: {
    type: 'object',
    properties: {
      name: nameSchema('A new name for the schedule, such as "morning report".'),
      message: { type: 'string', minLength: 1, description: 'The text of the message, at most 32 KiB of UTF-8.' },
      cron: {
        type: 'string',
        maxLength: 1024,
        description:
          'A cron expression: minute hour day-of-month month day-of-week, such as "0 9 * * 1-5". Six fields begin with the second. At most every 10 seconds.',
      },
      at: {
        type: 'string',
        maxLength: 64,
        description:
          'An ISO 8601 time in the future, at most ten years ahead, such as "2030-01-31T09:00:00+01:00". Without an offset it is a time of timezone.',
      },
      timezone: {
        type: 'string',
        maxLength: 64,
        description: 'An IANA time zone such as "Europe/Berlin". Default: UTC.',
      },
    },
    required: ['name', 'message'],
    additionalProperties: false,
  },
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  async run(args, { schedules }) {
    const { name, message, timezone = 'UTC' } = args
    const given = { name: String(name), message: String(message), timezone: String(timezone) }
    const { message: _, ...made } = await schedules.create({ ...given, ...timesOf(args) })
    return { value: made }
  },
}

/** Returns the times of a schedule. Throws `ToolError`. */
function timesOf({ cron, at }: Record<string, unknown>): { cron: string } | { at: string } {
  if (typeof cron === 'string' && at === undefined) return { cron }
  if (typeof at === 'string' && cron === undefined) return { at }
  throw new ToolError('create_schedule needs exactly one of cron and at.')
}

const listSchedules: Tool = {
  name: 'list_schedules',
  displayName: 'List the schedules',
  description:
    "Lists the schedules that were made with create_schedule in this session, by name, with the beginning of each one's message and its next run. Others, which administrators have made, are not listed. One with at is disabled once it has run.",
  parameters: { type: 'object', properties: {}, additionalProperties: false },
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  run: async (_, { schedules }) => ({ value: { schedules: await schedules.list() } }),
}

const deleteSchedule: Tool = {
  name: 'delete_schedule',
  displayName: 'Delete a schedule',
  description: 'Deletes a schedule that was made with create_schedule in this session. Nothing is posted any more.',
  parameters: {
    type: 'object',
    properties: { name: nameSchema('The name of the schedule.') },
    required: ['name'],
    additionalProperties: false,
  },
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  async run(args, { schedules }) {
    const name = String(args.name)
    return { value: { name, ...(await schedules.delete(name)) } }
  },
}

/**
 * Schedules that post messages in their own session. All tools may run again: a repeated call changes nothing and
 * returns the first answer.
 */
export const sessionSchedule: Capability = {
  id: 'session_schedule',
  name: 'Schedules',
  description: 'Lets the agent run a message in this session later, once or repeatedly.',
  status: 'available',
  category: 'productivity',
  icon: 'calendar-clock',
  dependencies: ['current_time'],
  features: ['schedules'],
  tools: [createSchedule, listSchedules, deleteSchedule],
}
