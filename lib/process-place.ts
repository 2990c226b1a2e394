import { readFileSync, readlinkSync } from 'node:fs'

/** Where processes see each other: a boot of a machine, and a namespace of process ids in it. Undefined where that is not told. */
const neighbourhood = read(
  () => `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${readlinkSync('/proc/self/ns/pid')}`,
)

/**
 * Place of this process, for `hasEnded` of another one: `<boot>/<namespace>/<pid>/<start>`. Undefined on systems without
 * Linux's /proc.
 */
export const processPlace: string | undefined =
  neighbourhood && startOf(process.pid) && `${neighbourhood}/${process.pid}/${startOf(process.pid)}`

/** Whether the process at a place has certainly ended. False for a process that cannot be seen from here. */
export function hasEnded(place: string): boolean {
  const [boot, namespace, pid, start] = place.split('/')
  if (`${boot}/${namespace}` !== neighbourhood || start === undefined) return false
  return startOf(Number(pid)) !== start
}

/** Returns when a process began, in ticks since the machine's start. Undefined when there is no such process. */
function startOf(pid: number): string | undefined {
  // The second field is the program's name, which may contain spaces and brackets.
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  // A process that has ended and has not been waited for still has its entry.
  return fields?.[0] === 'Z' ? undefined : fields?.[19]
}

function read(from: () => string): string | undefined {
  try {
    return from()
  } catch {
    return undefined
  }
}
