/** Numbers that the fields of an expression match: minute, hour, day of the month, month, day of the week. */
type Fields = {
  minutes: number[]
  hours: number[]
  days: number[]
  months: number[]
  weekdays: number[]
  isEither: boolean
}

const LIMITS: [min: number, max: number][] = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
]

/** Reads an expression of five fields of numbers. Undefined for any other, which only the service can read. */
function readFields(expression: string): Fields | undefined {
  const texts = expression.trim().split(/\s+/)
  if (texts.length !== LIMITS.length) return undefined
  const read = texts.map((text, index) => readField(text, LIMITS[index] ?? [0, 0]))
  const [minutes, hours, days, months, weekdays] = read
  if (!minutes || !hours || !days || !months || !weekdays) return undefined
  const isEither = texts[2] !== '*' && texts[4] !== '*'
  return { minutes, hours, days, months, weekdays: weekdays.map((day) => day % 7), isEither }
}

function readField(text: string, [min, max]: [number, number]): number[] | undefined {
  const found = new Set<number>()
  for (const item of text.split(',')) {
    const parts = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(item)
    if (parts === null) return undefined
    const [, first, last, every] = parts
    const start = Number(first ?? min)
    const end = Number(last ?? (first !== undefined && every === undefined ? first : max))
    const step = Number(every ?? 1)
    if (start < min || start > end || end > max || step < 1) return undefined
    for (let value = start; value <= end; value += step) found.add(value)
  }
  return [...found].sort((a, b) => a - b)
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
/** Days that are searched: 29 February comes within these. */
const MAX_DAYS = 4 * 366

/** Returns the wall-clock time of a time zone, as if it were UTC. Throws for an unknown zone. */
function wallOf(at: number, zone: string): number {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  return Date.UTC(part.year ?? 0, (part.month ?? 1) - 1, part.day ?? 1, part.hour ?? 0, part.minute ?? 0)
}

/** Returns the instant of a wall-clock time. */
function instantOf(wall: number, zone: string): number {
  const guess = wall - (wallOf(wall, zone) - wall)
  return guess - (wallOf(guess, zone) - wall)
}

/**
 * Returns the next runs of a schedule after a time, in milliseconds since the epoch. Undefined if only the service can
 * tell: it also reads names, seconds and years. Throws for an unknown time zone.
 */
export function nextRuns(expression: string, zone: string, after: number, count: number): number[] | undefined {
  const fields = readFields(expression)
  if (fields === undefined) return undefined
  const { minutes, hours, days, months, weekdays, isEither } = fields
  const now = wallOf(after, zone)
  const today = Math.floor(now / DAY_MS) * DAY_MS
  const found: number[] = []
  for (let day = today; day < today + MAX_DAYS * DAY_MS && found.length < count; day += DAY_MS) {
    const date = new Date(day)
    const [inMonth, inWeek] = [days.includes(date.getUTCDate()), weekdays.includes(date.getUTCDay())]
    if (!months.includes(date.getUTCMonth() + 1) || !(isEither ? inMonth || inWeek : inMonth && inWeek)) continue
    for (const hour of hours) {
      // An hour that is over, or is not needed any more.
      if (day + (hour + 2) * 60 * MINUTE_MS < now || found.length >= count) continue
      for (const minute of minutes) {
        const at = instantOf(day + (hour * 60 + minute) * MINUTE_MS, zone)
        if (at > after && found.length < count) found.push(at)
      }
    }
  }
  return found
}

/** Times that the form can enter without an expression. */
export type Preset = { kind: 'hour' | 'day' | 'weekdays' | 'week' | 'month'; minute: number; hour: number; day: number }

export const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
/** Names of the presets, and of the other choice. */
export const KINDS = {
  hour: 'Every hour',
  day: 'Every day',
  weekdays: 'Every weekday',
  week: 'Every week',
  month: 'Every month',
  custom: 'As a cron expression',
}

/** Reads the preset of an expression. Undefined for any other expression. */
export function presetOf(expression: string): Preset | undefined {
  const parts = /^(\d{1,2}) (\*|\d{1,2}) (\*|\d{1,2}) \* (\*|1-5|[0-7])$/.exec(expression.trim().replace(/\s+/g, ' '))
  if (parts === null || readFields(expression) === undefined) return undefined
  const [, minute, hour, ofMonth, ofWeek] = parts
  const numbers = { minute: Number(minute), hour: Number(hour === '*' ? 8 : hour) }
  if (hour === '*') return ofMonth === '*' && ofWeek === '*' ? { kind: 'hour', ...numbers, day: 1 } : undefined
  if (ofMonth !== '*') return ofWeek === '*' ? { kind: 'month', ...numbers, day: Number(ofMonth) } : undefined
  if (ofWeek === '*') return { kind: 'day', ...numbers, day: 1 }
  return ofWeek === '1-5'
    ? { kind: 'weekdays', ...numbers, day: 1 }
    : { kind: 'week', ...numbers, day: Number(ofWeek) % 7 }
}

export function expressionOf({ kind, minute, hour, day }: Preset): string {
  const at = `${minute} ${hour}`
  return {
    hour: `${minute} * * * *`,
    day: `${at} * * *`,
    weekdays: `${at} * * 1-5`,
    week: `${at} * * ${day % 7}`,
    month: `${at} ${Math.max(1, day)} * *`,
  }[kind]
}

const two = (value: number): string => String(value).padStart(2, '0')
export const clockOf = ({ hour, minute }: Preset): string => `${two(hour)}:${two(minute)}`

/** Says when a schedule runs: "Weekdays at 08:00". Undefined if it takes more than a few words. */
export function inWords(expression: string): string | undefined {
  const [, every] = /^\*\/(\d{1,2}) \* \* \* \*$/.exec(expression.trim()) ?? []
  // Any other step begins anew with each hour.
  if (every && 60 % Number(every) === 0) return every === '1' ? 'Every minute' : `Every ${every} minutes`
  const preset = presetOf(expression)
  if (preset === undefined) return undefined
  const { kind, minute, day } = preset
  const at = `at ${clockOf(preset)}`
  return {
    hour: minute === 0 ? 'Every hour' : `Every hour, ${minute} min past`,
    day: `Every day ${at}`,
    weekdays: `Weekdays ${at}`,
    week: `Every ${WEEKDAYS[day]} ${at}`,
    month: `On day ${day} of every month ${at}`,
  }[kind]
}
