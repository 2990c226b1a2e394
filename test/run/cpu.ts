import { readdirSync, readFileSync } from 'node:fs'

/** CPU seconds of this process's children by their names, largest first. Linux only: elsewhere the list is empty. */
export type Usage = { name: string; seconds: number }

/** Unit of /proc/<pid>/stat, which Linux has fixed at 100 a second. */
const TICKS_PER_SECOND = 100

type Stat = { pid: number; parent: number; ticks: number; reapedTicks: number }

/** Reads the CPU time of a process, and of its children that have ended. Empty if it has ended itself. */
function readStat(pid: number): Stat[] {
  const text = readText(`/proc/${pid}/stat`)
  // The second field is the process's name in parentheses, which may contain spaces.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [, parent = 0] = fields
  const [user = 0, system = 0, reapedUser = 0, reapedSystem = 0] = fields.slice(11)
  return text === '' ? [] : [{ pid, parent, ticks: user + system, reapedTicks: reapedUser + reapedSystem }]
}

/** Reads the CPU time of the running children of this process, each with its descendants. */
export function readChildren(): Usage[] {
  const stats = readNames('/proc').map(Number).filter(Number.isInteger).flatMap(readStat)
  const ticksOf = ({ pid, ticks, reapedTicks }: Stat): number =>
    stats.filter(({ parent }) => parent === pid).reduce((sum, child) => sum + ticksOf(child), ticks + reapedTicks)
  const sums = new Map<string, number>()
  for (const child of stats.filter(({ parent }) => parent === process.pid)) {
    const name = nameOf(child.pid)
    sums.set(name, (sums.get(name) ?? 0) + ticksOf(child) / TICKS_PER_SECOND)
  }
  return [...sums].map(([name, seconds]) => ({ name, seconds })).sort((left, right) => right.seconds - left.seconds)
}

/** Returns the CPU seconds of all children of this process that have ended. */
export const readEnded = (): number => (readStat(process.pid)[0]?.reapedTicks ?? 0) / TICKS_PER_SECOND

/** Returns the program's name, with the argument that says what it runs, if it is Node.js. */
function nameOf(pid: number): string {
  const words = readText(`/proc/${pid}/cmdline`).split('\0').filter(Boolean)
  const program = words[0]?.split('/').at(-1) ?? 'unknown'
  const script = words.findIndex((word) => /\.[cm]?[jt]s$/.test(word))
  return program === 'node' && script > 0 ? `node ${words.slice(script).join(' ')}` : program
}

/** A line for each test file, which test/support/jest/native-environment.cjs writes. */
export type FileUsage = { file: string; ownSeconds: number; childrenSeconds: number }

export function readFileUsages(file: string): FileUsage[] {
  const lines = readText(file).split('\n').filter(Boolean)
  const usages: FileUsage[] = lines.map((line) => JSON.parse(line))
  return usages.sort((left, right) => total(right) - total(left))
}

const total = ({ ownSeconds, childrenSeconds }: FileUsage): number => ownSeconds + childrenSeconds

const MAX_FILES = 25

/** Formats the CPU time by process, and of the files that took most. Returns '' if nothing was measured. */
export function formatUsage(processes: Usage[], files: FileUsage[], root: string): string {
  if (processes.length === 0) return ''
  const sum = processes.reduce((seconds, usage) => seconds + usage.seconds, 0)
  const line = (seconds: number[], name: string) =>
    `${seconds.map((one) => one.toFixed(1).padStart(8)).join('')}  ${name}`
  const own = files.reduce((seconds, usage) => seconds + usage.ownSeconds, 0)
  const children = files.reduce((seconds, usage) => seconds + usage.childrenSeconds, 0)
  return [
    'CPU seconds by process:',
    ...processes.map(({ name, seconds }) => line([seconds], name)),
    line([sum], 'all'),
    'CPU seconds of test files, and of the processes that they started:',
    ...files
      .slice(0, MAX_FILES)
      .map((usage) => line([usage.ownSeconds, usage.childrenSeconds], usage.file.replace(root, ''))),
    line([own, children], `all ${files.length} files`),
  ].join('\n')
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Returns '' if there is no such file, or no longer. */
function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
