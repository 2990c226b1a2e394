import { readdirSync, readFileSync } from 'node:fs'

/** Length of a clock tick of /proc in ms. Linux has reported 100 ticks a second to every program since 2.6. */
const TICK_MS = 10

/** Process ids of each role. Their child processes count too. */
export type Processes = Record<string, number[]>
/** CPU of each role in ms. */
export type Cpu = Record<string, number>

/** Reads the CPU that each role has used so far, including the role's running and ended child processes. */
export function readCpu(processes: Processes): Cpu {
  const { cpuMs, children } = readProcesses()
  const sum = (pid: number): number =>
    (cpuMs.get(pid) ?? 0) + (children.get(pid) ?? []).reduce((total, child) => total + sum(child), 0)
  const ofRole = (pids: number[]) => pids.reduce((total, pid) => total + sum(pid), 0)
  return Object.fromEntries(Object.entries(processes).map(([role, pids]) => [role, ofRole(pids)]))
}

/** Returns the CPU between two readings, divided by `turns`. */
export const cpuPerTurn = (before: Cpu, after: Cpu, turns: number): Cpu =>
  Object.fromEntries(Object.entries(after).map(([role, ms]) => [role, (ms - (before[role] ?? 0)) / turns]))

export const sumOf = (cpu: Cpu): number => Object.values(cpu).reduce((total, ms) => total + ms, 0)

/** Starts to measure how many cores are used by programs that the bench has not started. */
export function watchOthers(): () => number {
  const read = () => ({ at: performance.now(), ms: readMachineMs() - sumOf(readCpu({ bench: [process.pid] })) })
  const before = read()
  return () => {
    const after = read()
    return (after.ms - before.ms) / (after.at - before.at)
  }
}

/** Reads the time in which the machine's cores were not idle: user, nice, system, irq, softirq. */
function readMachineMs(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (
    readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? ''
  )
    .split(/ +/)
    .map(Number)
  return (user + nice + system + irq + softirq) * TICK_MS
}

function readProcesses() {
  const cpuMs = new Map<number, number>()
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    const stat = readStat(name)
    if (stat === undefined) continue
    // Fields 4 and 14 to 17 of proc(5). The second one, the program's name, may hold blanks.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const parent = Number(fields[1])
    cpuMs.set(Number(name), fields.slice(11, 15).reduce((total, ticks) => total + Number(ticks), 0) * TICK_MS)
    children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  return { cpuMs, children }
}

function readStat(pid: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    // It has ended since it was listed.
    return undefined
  }
}
