import { type Fault, type FaultyProxy, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { addressOf, type Target, waitFor } from '../../support/http.ts'
import { readTurns, type StoredTurn, sessionOf } from '../ai/checks.ts'
import { createAgent } from '../ai/stage.ts'

/** Agent that programs speak to as a model, through a proxy. */
export type Stage = {
  agentId: string
  target: Target
  proxy: FaultyProxy
  /** Address for a client's `baseURL`. */
  baseURL: string
  /** Spoils the next requests, in this order. */
  spoil(...faults: (Fault | undefined)[]): void
  /** Number of questions that reached the proxy. */
  posts(): number
  /** Returns the turns of the agent's only session. */
  turns(): Promise<StoredTurn[]>
  /** Expects that the agent's only session has these turns: each a message and its answer. */
  expectStored(...turns: [asked: string, answered: string][]): Promise<void>
  close(): Promise<void>
}

const textOf = (content: { text?: string }[]): string => content.map(({ text }) => text ?? '').join('')

/** Creates an agent whose model plays the steps. `pageTarget` is what programs speak to, if not the target. */
export async function openStage(target: Target, steps: object[], pageTarget: Target = target): Promise<Stage> {
  const faults: (Fault | undefined)[] = []
  const proxy = await startFaultyProxy(pageTarget, () => faults.shift(), 'keep-alive')
  const agentId = await createAgent(target, steps)
  const turns = async () => readTurns(target, await sessionOf(target, agentId))
  return {
    ...{ agentId, target, proxy, turns },
    baseURL: `${addressOf(proxy.target)}/v1`,
    spoil: (...next) => void faults.push(...next),
    posts: () => proxy.exchanges.filter(({ method }) => method === 'POST').length,
    expectStored: async (...wanted) => {
      const stored = (await turns()).map(({ asked, answers }) => [
        textOf(asked.content),
        answers.map(({ content }) => textOf(content)).join(''),
      ])
      expect(stored).toEqual(wanted)
    },
    close: async () => {
      await waitFor(async () => proxy.open === 0, 'all connections to close')
      await proxy.close()
    },
  }
}

/** Runs a test with an agent whose model plays the steps. */
export async function withStage(
  target: Target,
  steps: object[],
  check: (stage: Stage) => Promise<void>,
): Promise<void> {
  const stage = await openStage(target, steps)
  try {
    await check(stage)
  } finally {
    await stage.close()
  }
}
