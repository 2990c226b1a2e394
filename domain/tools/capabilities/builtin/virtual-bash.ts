import { DomainError } from '../../../kit/errors.ts'
import { type Capability, type Tool, type ToolContext, ToolError } from '../capability.ts'
import type { ToolOutput } from '../tool-output.ts'
import type { CommandResult, Output } from '../virtual-bash/command.ts'
import { WAIT_MS } from '../virtual-bash/processes.ts'
import { CommandStopped, runCommand } from '../virtual-bash/run-command.ts'

const TIMEOUT_SECS = { default: 30, maximum: 120 }

/** Differences from bash, here because the tool's own description is at its maximum length. */
const SCRIPT = [
  'The script. A redirection to what cannot be written breaks it off, and nothing is kept; inside if, for, while, case,',
  'functions, { } and ( ) only that construct ends, and what was done is kept. A string or the output of a command has at',
  "most 32 MiB, and {1..n} at most 10,000 words: use seq. printf '\\377' and '\\xff' write a character as UTF-8: write",
  'other bytes with base64 -d. Missing are trap, mktemp, dd, xxd, bc, cmp, patch, realpath, truncate and others.',
].join(' ')

const bash: Tool = {
  name: 'bash',
  displayName: 'Run bash',
  description: [
    "Runs a bash command over the session's files, without a real machine: no network, no other programs, no jobs in",
    'the background. There are the usual tools for files and text (ls, find, grep, rg, sed, awk, sort, diff, tar, gzip),',
    'and jq, yq and xan for data. Each call is a new shell in /, and only files are kept. /bin, /dev, /tmp and /usr are',
    "the shell's own: / does not list them, nothing in them is kept, and the session's files there are not seen. All that",
    'a command changes is written at its end, also when it exits with an error; nothing is when it is stopped or breaks',
    'off, or when somebody else has changed a file that it has read or written. Links and modes are not kept.',
    'At most 64 KB of output are given back: write more into a file and read that in parts.',
  ].join(' '),
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', minLength: 1, maxLength: 100_000, description: SCRIPT },
      timeout_secs: {
        type: 'integer',
        minimum: 1,
        maximum: TIMEOUT_SECS.maximum,
        description: `The command is stopped this long after it has begun; ${TIMEOUT_SECS.default} unless given.`,
      },
    },
    required: ['command'],
    additionalProperties: false,
  },
  timeoutMs: TIMEOUT_SECS.maximum * 1000 + WAIT_MS + 20_000,
  // All its changes are one transaction.
  mayRunAgain: true,
  async run({ command, timeout_secs = TIMEOUT_SECS.default }, run) {
    if (run.mayHaveRun && (await run.files.hasChanged())) return OUTPUT_LOST
    const timeoutMs = Number(timeout_secs) * 1000
    try {
      const call = { command: String(command), timeoutMs, organizationId: run.organizationId }
      const result = await runCommand(run.bash, run.files, call, run.signal)
      return await keep(result, run)
    } catch (error) {
      if (!(error instanceof CommandStopped || error instanceof DomainError)) throw error
      throw new ToolError(`${error.message}. Nothing that the command changed was kept.`)
    }
  },
}

const OUTPUT_LOST: ToolOutput = {
  value: {
    note: 'The command has run and its changes were kept, but its output was lost in an interruption. Look at the files.',
  },
}

async function keep(result: CommandResult & { outcome: 'exited' }, { files }: ToolContext): Promise<ToolOutput> {
  const { exitCode, stdout, stderr, changes } = result
  if (changes.length > 0 && (await files.change(changes)).outcome === 'repeated') return OUTPUT_LOST
  const value = { exit_code: exitCode, ...present('stdout', stdout), ...present('stderr', stderr) }
  return { value }
}

const present = (name: 'stdout' | 'stderr', { text, omittedBytes }: Output) => ({
  [name]: text,
  ...(omittedBytes > 0 ? { [`${name}_omitted_bytes`]: omittedBytes } : {}),
})

export const virtualBash: Capability = {
  id: 'virtual_bash',
  name: 'Bash',
  description: "Runs bash over the session's files, without a real machine.",
  status: 'available',
  category: 'files',
  icon: 'terminal',
  dependencies: ['session_file_system'],
  features: [],
  tools: [bash],
}
