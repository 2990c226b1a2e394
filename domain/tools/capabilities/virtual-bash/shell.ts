import { Bash, defineCommand, getCommandNames, type IFileSystem, InMemoryFs, MountableFs } from 'just-bash'
import { pathProblem } from '../../../../contract/kit/file-paths.ts'
import { sleep } from './clock.ts'
import { Overlay } from './overlay.ts'

/** The shell's own directories, created for each command and not kept. */
const OWN_DIRECTORIES = ['/bin', '/dev', '/tmp', '/usr']

export const isOwn = (path: string): boolean =>
  OWN_DIRECTORIES.some((own) => path === own || path.startsWith(`${own}/`))

/** Excluded commands: sqlite3 starts its own thread, whose memory has no limit. */
const LEFT_OUT = ['sqlite3']
const COMMANDS = getCommandNames().filter((name) => !LEFT_OUT.includes(name)) as Commands
/** Message of just-bash about a command that only some of its builds have. */
const NOT_IN_BUILD = /command not available in browser environments\. Exclude '\S+' from .*? the Node\.js bundle\./g
type Commands = NonNullable<NonNullable<ConstructorParameters<typeof Bash>[0]>['commands']>

const MIB = 1024 * 1024
const MAX_OWN_BYTES = 32 * MIB

/**
 * Creates a bash over the files. Its limits suit legitimate scripts; others hit the process's limits of time and
 * memory.
 */
export const createShell = (files: IFileSystem, timeoutMs: number): Bash =>
  new Bash({
    fs: new ShellFiles(files),
    cwd: '/',
    env: { TMPDIR: '/tmp' },
    commands: COMMANDS,
    customCommands: [sleepCommand],
    executionLimits: {
      maxExecutionTimeMs: timeoutMs,
      maxSourceBytes: MIB,
      maxCommandCount: 1_000_000,
      maxLoopIterations: 1_000_000,
      maxAwkIterations: 10_000_000,
      maxSedIterations: 1_000_000,
      maxOutputSize: 256 * MIB,
      maxStringLength: 32 * MIB,
      maxHeredocSize: 16 * MIB,
      maxLiveBytes: 128 * MIB,
      maxArchiveBytes: 64 * MIB,
      maxArchiveEntryBytes: 32 * MIB,
      maxArchiveCompressedBytes: 32 * MIB,
      maxArchiveEntries: 10_000,
    },
  })

/** Rewords bash's message about a missing command. */
export const inOwnWords = (output: string): string => output.replace(NOT_IN_BUILD, 'not available here')

const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DONE = { stdout: '', stderr: '', exitCode: 0 }

/** Sleeps without real delay. The original command reports wrong arguments. */
const sleepCommand = defineCommand('sleep', async (args, ctx) => {
  const times = args.map((arg) => /^(\d+\.?\d*|\.\d+)([smhd]?)$/.exec(arg))
  const all = times.map((match) => Number(match?.[1]) * (UNIT_MS[match?.[2] || 's'] ?? 1000))
  const ms = all.reduce((sum, each) => sum + each, 0)
  if (args.length > 0 && Number.isFinite(ms)) await sleep(ms, ctx.signal)
  else if (ctx.origCommand !== undefined) return ctx.origCommand(args)
  return DONE
})

/**
 * The files with the shell's own directories, which `/` does not list, so that `find .` and `ls *` find only the
 * session's.
 */
class ShellFiles extends MountableFs {
  private readonly files: IFileSystem
  constructor(files: IFileSystem) {
    super({ base: files, mounts: ownMounts() })
    this.files = files
  }
  override readdir(path: string): Promise<string[]> {
    return this.resolvePath('/', path) === '/' ? this.files.readdir('/') : super.readdir(path)
  }
}

function ownMounts(): { mountPoint: string; filesystem: IFileSystem }[] {
  const stubs = (directory: string) =>
    new InMemoryFs(Object.fromEntries(COMMANDS.map((name) => [`${directory}/${name}`, '#!/bin/bash\n'])), {
      maxTotalBytes: MIB,
    })
  const scratch = { entries: [], fetch: async () => new Uint8Array(), problemOf: pathProblem }
  return [
    { mountPoint: '/bin', filesystem: stubs('') },
    { mountPoint: '/usr', filesystem: stubs('/bin') },
    {
      mountPoint: '/dev',
      filesystem: new Devices(
        { '/null': '', '/stdin': '', '/stdout': '', '/stderr': '' },
        { maxTotalBytes: MAX_OWN_BYTES },
      ),
    },
    {
      mountPoint: '/tmp',
      filesystem: new Overlay({ ...scratch, maxFileBytes: MAX_OWN_BYTES, maxBytes: MAX_OWN_BYTES }),
    },
  ]
}

/** Devices. /dev/null discards its input; /dev/fd has the files of process substitutions. */
class Devices extends InMemoryFs {
  override async writeFile(...args: Parameters<InMemoryFs['writeFile']>): Promise<void> {
    if (args[0] !== '/null') await super.writeFile(...args)
  }
  override async appendFile(...args: Parameters<InMemoryFs['appendFile']>): Promise<void> {
    if (args[0] !== '/null') await super.appendFile(...args)
  }
}
