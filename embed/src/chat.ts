import {
  type Answer,
  ApiError,
  type Client,
  type ContentPart,
  type InputContentPart,
  type SessionClient,
  type Tool,
  TurnFailed,
} from 'agent-session-client'
import { QUESTION } from './call.ts'
import { loadHistory } from './history.ts'
import type { Memory } from './memory.ts'
import type { PastTurn } from './past-turns.ts'
import type { TurnView } from './turn.ts'

/** Where a chat is shown, and who hears of it. */
export type ChatView = {
  /** Adds a turn at the end, or a loaded one: before all turns that were begun here. */
  addTurn(content: ContentPart[], place: 'end' | 'loaded'): TurnView
  /** Shows why the conversation cannot be shown, or removes that. */
  setProblem(sentence: string | undefined, tryAgain: () => void): void
  setBusy(isBusy: boolean): void
  emit(type: 'session' | 'answer' | 'error', detail: Record<string, unknown>): void
}

export type ChatOptions = {
  client: Client
  memory: Memory
  agentId: string | undefined
  /** Session to continue, instead of the remembered one. */
  sessionId: string | undefined
  tools: Record<string, Tool>
  view: ChatView
}

export type Chat = {
  send(content: InputContentPart[]): void
  /** Cancels the turn that runs. */
  stop(): void
  addTools(tools: Record<string, Tool>): void
  /** Stops following. The turns continue. */
  close(): void
}

/** Turn that is being followed. */
type Run = {
  view: TurnView
  tools: Record<string, Tool>
  content: InputContentPart[]
  turnId: string | undefined
  /** Key under which its message is posted, once it is being sent. */
  key: string | undefined
  answer: Promise<Answer> | undefined
}

export function openChat({ client, memory, agentId, sessionId, tools, view }: ChatOptions): Chat {
  const leave = new AbortController()
  const { signal } = leave
  /** Unfinished turns, in the order in which they run. */
  const runs: Run[] = []
  let session: Promise<SessionClient> | undefined
  /** Why the conversation so far could not be loaded. */
  let problem: { error: unknown } | undefined

  const showStates = () => {
    if (signal.aborted) return
    view.setBusy(runs.length > 0)
    runs.forEach((run, index) => {
      if (index === 0) run.view.setStatus('Working…')
      else run.view.setStatus('Queued.', () => cancel(run))
    })
  }
  const sentenceOf = (error: unknown): string => {
    view.emit('error', { error })
    const isSentence = error instanceof ApiError || error instanceof TurnFailed
    return isSentence ? error.message : 'The service cannot be reached.'
  }
  const getSession = (): Promise<SessionClient> => {
    session ??= client.sessions.create(agentId === undefined ? {} : { agent_id: agentId }, { signal }).then(remember)
    const current = session
    current.catch(() => {
      if (session === current) session = undefined
    })
    return current
  }
  const remember = (created: SessionClient): SessionClient => {
    memory.keepSession(created.id)
    view.emit('session', { id: created.id })
    return created
  }

  const follow = async (run: Run, start: () => Promise<Answer>) => {
    if (!runs.includes(run)) runs.push(run)
    showStates()
    try {
      run.answer = start()
      const answer = await run.answer
      answer.turnId.then(
        (id) => {
          run.turnId = id
          if (run.key !== undefined) memory.settle(run.key)
        },
        () => {},
      )
      for await (const part of answer) if (!signal.aborted) run.view.take(part)
      run.view.end()
      if (!signal.aborted) view.emit('answer', { turnId: run.turnId, text: await answer.text() })
    } catch (error) {
      if (!signal.aborted) fail(run, error)
    }
    runs.splice(runs.indexOf(run), 1)
    showStates()
  }
  /** The next message begins another session. */
  const leaveSession = () => {
    memory.forget()
    session = undefined
  }
  const fail = (run: Run, error: unknown) => {
    if (error instanceof TurnFailed && error.code === 'cancelled') return run.view.end('Stopped.')
    const { turnId, key } = run
    if (error instanceof TurnFailed) {
      if (error.code === 'session_deleted') leaveSession()
      return run.view.fail(sentenceOf(error), () => send(run.content))
    }
    // From now on the user decides whether it is sent again, and not a reload.
    if (key !== undefined) memory.settle(key)
    if (isGone(error)) leaveSession()
    run.view.fail(sentenceOf(error), () => {
      run.view.reset()
      if (turnId !== undefined) void follow(run, async () => (await getSession()).answer(turnId, optionsOf(run)))
      else void follow(run, () => post(run))
    })
  }
  const optionsOf = ({ view: shown, tools: own }: Run) => ({ signal, tools: own, approve: shown.approve })
  const post = async (run: Run): Promise<Answer> => {
    await opening
    if (problem !== undefined) await reopen()
    if (problem !== undefined) throw problem.error
    const to = await getSession()
    const answer = to.send(run.content, { ...optionsOf(run), idempotencyKey: run.key })
    run.key = answer.idempotencyKey
    memory.keep({ session: to.id, key: run.key, content: run.content })
    return answer
  }
  const createRun = (content: ContentPart[], turnId?: string): Run => {
    const shown = view.addTurn(content, turnId === undefined ? 'end' : 'loaded')
    const own: Record<string, Tool> = { [QUESTION]: (_, call) => shown.question(call), ...tools }
    const sent = content.filter((part): part is InputContentPart => /^(?:text|image)/.test(part.type))
    return { view: shown, tools: own, content: sent, turnId, key: undefined, answer: undefined }
  }
  const send = (content: InputContentPart[]) => {
    const run = createRun(content)
    void follow(run, () => post(run))
  }
  const cancel = async (run: Run) => {
    try {
      const id = run.turnId ?? (await (await run.answer)?.turnId)
      await (await getSession()).cancel(id)
    } catch (error) {
      if (!signal.aborted && runs.includes(run)) run.view.setStatus(sentenceOf(error), () => cancel(run))
    }
  }

  const show = (found: SessionClient, turns: PastTurn[]) => {
    const loaded = turns.map((turn) => ({ ...turn, run: createRun(turn.content, turn.turnId) }))
    // They run before the turns that have been begun meanwhile.
    runs.unshift(...loaded.flatMap(({ state, run }) => (state === 'unfinished' ? [run] : [])))
    loaded.forEach(({ turnId, parts, state, run }, index) => {
      for (const part of parts) run.view.take(part)
      if (state === 'unfinished') void follow(run, async () => found.answer(turnId, optionsOf(run)))
      else if (state === 'completed') run.view.end()
      else if (state === 'cancelled') run.view.end('Stopped.')
      else run.view.fail(state.failure, index === loaded.length - 1 ? () => send(run.content) : undefined)
    })
  }
  /** Shows the conversation so far, and follows its unfinished turns. */
  const open = async (): Promise<void> => {
    const id = sessionId ?? memory.session()
    if (id === undefined) return
    const found = client.session(id)
    try {
      const turns = await loadHistory(client, found, memory, signal)
      if (signal.aborted) return
      problem = undefined
      session = Promise.resolve(found)
      view.setProblem(undefined, () => {})
      view.emit('session', { id })
      show(found, turns)
    } catch (error) {
      if (signal.aborted) return
      if (isGone(error) && sessionId === undefined) return memory.forget()
      problem = { error }
      view.setProblem(sentenceOf(error), reopen)
    }
  }
  const reopen = () => {
    opening = opening.then(() => (problem === undefined ? undefined : open()))
    return opening
  }
  let opening = open()
  return {
    send,
    stop: () => {
      const [running] = runs
      if (running) void cancel(running)
    },
    addTools: (more) => {
      for (const run of runs) Object.assign(run.tools, more)
    },
    close: () => leave.abort(),
  }
}

/** Reports whether the session does not exist any more. */
const isGone = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'not_found' && error.field === 'session_id'
