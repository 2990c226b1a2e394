import { type Capability, type Tool, ToolError } from '../capability.ts'

const getCurrentTime: Tool = {
  name: 'get_current_time',
  displayName: 'Current time',
  description: 'Tells the current date and time, in UTC and in the time zone that is asked for.',
  parameters: {
    type: 'object',
    properties: {
      timezone: {
        type: 'string',
        maxLength: 100,
        description: 'An IANA time zone such as "Europe/Berlin". Default: UTC.',
      },
    },
    additionalProperties: false,
  },
  timeoutMs: 5000,
  mayRunAgain: true,
  async run({ timezone = 'UTC' }) {
    return { value: describeTime(new Date(), String(timezone)) }
  },
}

function describeTime(now: Date, timezone: string) {
  const parts = Object.fromEntries(
    formatter(timezone)
      .formatToParts(now)
      .map(({ type, value }) => [type, value]),
  )
  const { year, month, day, hour, minute, second, weekday, timeZoneName = 'GMT' } = parts
  const offset = timeZoneName.replace('GMT', '') || '+00:00'
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}${offset}`
  return { timezone, local_time: local, weekday, utc_time: now.toISOString() }
}

function formatter(timezone: string): Intl.DateTimeFormat {
  const digits = '2-digit'
  const day = { weekday: 'long', year: 'numeric', month: digits, day: digits } as const
  const time = { hour: digits, minute: digits, second: digits, hourCycle: 'h23', timeZoneName: 'longOffset' } as const
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: timezone, ...day, ...time })
  } catch {
    throw new ToolError(`There is no time zone "${timezone}"; use an IANA name such as "Europe/Berlin" or "UTC".`)
  }
}

export const currentTime: Capability = {
  id: 'current_time',
  name: 'Current time',
  description: 'Lets the agent ask what time it is, in any time zone.',
  status: 'available',
  category: 'utility',
  icon: 'clock',
  dependencies: [],
  features: [],
  tools: [getCurrentTime],
}
