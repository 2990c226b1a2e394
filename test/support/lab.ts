import { type Capability, type Tool, type ToolContext, ToolError } from '../../domain/tools/capabilities/capability.ts'
import { type Answers, InputRequired } from '../../domain/tools/capabilities/questions.ts'
import { sleep } from '../../lib/sleep.ts'

/** Run of a lab tool in this process. */
export type LabRun = {
  organizationId: string
  turnId: string
  tool: string
  args: Record<string, unknown>
  callId: string
  mayHaveRun: boolean
  aborted: boolean
}

const anything = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    ms: { type: 'integer' },
    times: { type: 'integer' },
    kib: { type: 'integer' },
  },
}

const pictureOf = (base64: string) => ({ type: 'image', base64, media_type: 'image/png' }) as const

/** Images of the tool `picture`: `times` of them, each of `kib` KiB if that is given. */
const picturesOf = ({ times = 1, kib }: Record<string, unknown>) =>
  Array.from({ length: Number(times) }, () =>
    pictureOf(kib === undefined ? 'iVBORw0KGgo=' : 'A'.repeat(Number(kib) * 1024)),
  )

/**
 * Asks in `times` rounds, in each as many questions as the round's number, and returns the answers. `text` selects a
 * wrong request: no question, or a key or state that cannot be stored.
 */
function ask({ times = 1, text }: Record<string, unknown>, answers: Answers[]): Answers[] {
  const round = answers.length + 1
  if (round > Number(times)) return answers
  const schema = { type: 'object', properties: { name: { type: 'string' } } }
  const questions = Array.from({ length: round }, (_, index) => ({ key: `q${index}`, message: 'Who are you?', schema }))
  if (text === 'nothing') throw new InputRequired([])
  if (text === 'key') throw new InputRequired([{ key: 'a\0b', message: 'Who?', schema }])
  throw new InputRequired(questions, text === 'state' ? 'a\ud800' : `state ${round}`)
}

/**
 * Creates a capability with tools that misbehave in every way the service must handle. `runs` lists their runs, oldest
 * first.
 */
export function createLab(): { capability: Capability; runs: LabRun[] } {
  const runs: LabRun[] = []
  const tool = (
    name: string,
    run: (args: Record<string, unknown>, run: ToolContext) => Promise<unknown>,
    more: Partial<Tool> = {},
  ): Tool => ({
    name,
    displayName: `The ${name} tool`,
    description: `Does ${name}.`,
    parameters: anything,
    timeoutMs: 3_600_000,
    mayRunAgain: true,
    run: async (args, context) => {
      const { organizationId, turnId, callId, mayHaveRun } = context
      const entry = { organizationId, turnId, tool: name, args, callId, mayHaveRun, aborted: false }
      runs.push(entry)
      context.signal.addEventListener('abort', () => {
        entry.aborted = true
      })
      const value = await run(args, context)
      return name === 'picture' ? { value, images: picturesOf(args) } : { value }
    },
    ...more,
  })
  const pause = async (ms: number, signal: AbortSignal) => {
    await sleep(ms, signal)
    signal.throwIfAborted()
  }
  const wait = ({ ms }: Record<string, unknown>, { signal }: ToolContext) => pause(Number(ms ?? 50), signal)
  const tools = [
    tool('echo', async (args) => args),
    tool('picture', async () => 'see the image'),
    tool('repeat', async ({ text, times }) => String(text).repeat(Number(times))),
    tool('wait', async (args, run) => {
      await wait(args, run)
      return { waited: args.ms }
    }),
    tool('block', async ({ ms }) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms))
    }),
    tool('meet', async ({ times }, { signal, turnId }) => {
      const isHere = (run: LabRun) => run.tool === 'meet' && run.turnId === turnId
      while (runs.filter(isHere).length < Number(times)) await pause(10, signal)
    }),
    // Reports at once, and then `times` times a second for `ms`.
    tool('report', async ({ ms = 0, times = 1 }, { report, signal }) => {
      report({ progress: 0, total: Number(ms), message: 'begun' })
      const startedAt = performance.now()
      let reports = 0
      for (let over = 0; over < Number(ms); over = performance.now() - startedAt) {
        while (reports < (over * Number(times)) / 1000) report({ progress: ++reports })
        await pause(1, signal)
      }
      return reports
    }),
    tool('fail', async ({ text }) => {
      throw new ToolError(`failed as asked: ${text}`)
    }),
    tool('crash', async () => {
      throw new Error('SECRET-INNER-CAUSE')
    }),
    tool('hang', (args, run) => wait({ ms: 3_600_000, ...args }, run), { timeoutMs: 700 }),
    tool('deaf', () => new Promise(() => {}), { timeoutMs: 700 }),
    tool('flood', async () => 'x'.repeat(2 * 1024 * 1024)),
    tool('nul', async () => ({ text: 'a\0b\ud800c', '\0key': 1 })),
    tool('elicit', async (args, { answers }) => ask(args, answers), { mayRunAgain: false }),
    tool('once', async (args, run) => wait(args, run), { mayRunAgain: false }),
  ]
  const capability: Capability = {
    id: 'lab',
    name: 'Lab',
    description: 'Tools for tests.',
    status: 'available',
    category: 'test',
    dependencies: [],
    features: [],
    systemPrompt: 'You are in the lab.',
    tools,
  }
  return { capability, runs }
}
