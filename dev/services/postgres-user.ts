import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { findOnPath } from './command.ts'

export type SystemUser = {
  uid: number
  gid: number
}

/** A program to run as the user: the command, its arguments and the user to spawn it as. */
export type UserCommand = {
  command: string
  args: string[]
  user?: SystemUser
}

export type RunAsUser = (command: string, args: string[]) => UserCommand

const CAPABILITIES = [
  { name: 'dac_read_search', bit: 2n },
  { name: 'dac_override', bit: 1n },
]

/**
 * Finds the user for Postgres, which refuses to run as root; undefined when this process is not root. A container's
 * image has the user "nobody" even when it has no "postgres".
 */
export async function findPostgresUser(dataFolder: string): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const owner = await stat(dataFolder).catch(() => undefined)
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  const accounts = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  for (const wanted of ['postgres', 'nobody']) {
    const account = accounts.find(([name]) => name === wanted)
    if (account !== undefined) return { uid: Number(account[2]), gid: Number(account[3]) }
  }
  throw new Error('Postgres cannot run as root and this system has no user "postgres" or "nobody". Set DATABASE_URL.')
}

async function findClosedFolder(target: string, user: SystemUser): Promise<string | undefined> {
  for (let folder = path.dirname(target); ; folder = path.dirname(folder)) {
    const { mode, uid, gid } = await stat(folder)
    const mask = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001
    if ((mode & mask) === 0) return folder
    if (folder === path.dirname(folder)) return undefined
  }
}

async function findHeldCapability(): Promise<string | undefined> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  const held = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  return CAPABILITIES.find(({ bit }) => (held & (1n << bit)) !== 0n)?.name
}

/**
 * Prepares running programs as the user. Root's home folder is closed to other users, and a repository may well be in
 * it. The user is then lent the one capability that passes through closed folders, so that no folder has to be opened.
 */
export async function prepareRunAsUser(user: SystemUser | undefined, targets: string[]): Promise<RunAsUser> {
  if (user === undefined) return (command, args) => ({ command, args })
  const closed = (await Promise.all(targets.map((target) => findClosedFolder(target, user)))).find(Boolean)
  if (closed === undefined) return (command, args) => ({ command, args, user })
  const setpriv = await findOnPath('setpriv')
  const capability = await findHeldCapability()
  if (setpriv === undefined || capability === undefined) {
    throw new Error(
      `Postgres cannot run as root, and the folder ${closed} is closed to the user it would run as. ` +
        `Run "chmod o+x ${closed}", move the repository, run as an ordinary user, or set DATABASE_URL.`,
    )
  }
  const identity = ['--reuid', String(user.uid), '--regid', String(user.gid), '--clear-groups']
  // initdb calls access(2), which ignores capabilities of ordinary users unless this bit is set.
  const securityBits = ['--securebits', '+no_setuid_fixup']
  const lent = [...securityBits, '--inh-caps', `+${capability}`, '--ambient-caps', `+${capability}`]
  return (command, args) => ({ command: setpriv, args: [...identity, ...lent, command, ...args] })
}
