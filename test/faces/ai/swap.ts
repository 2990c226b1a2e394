import { askingScenarios } from './asking-scenarios.ts'
import { lossScenarios } from './loss-scenarios.ts'
import { plainScenarios } from './plain-scenarios.ts'
import type { Scenario } from './scenario.ts'
import { newAccount, openStage } from './stage.ts'
import type { VersionName } from './versions.ts'

/** Time for all scenarios, one after another. */
const ALL_MS = 300_000
const scenarios = [...plainScenarios, ...askingScenarios, ...lossScenarios]

/** Tests a page that is built with a version of the AI SDK against the service: each scenario alone, and all in one chat. */
export function describeSwap(name: VersionName): void {
  describe(`a chat of ${name}`, () => {
    // Concurrent tests begin before `beforeAll`.
    let account: ReturnType<typeof newAccount> | undefined

    const play = async (played: Scenario[]): Promise<void> => {
      account ??= newAccount()
      const steps = played.flatMap((scenario) => scenario.steps)
      const stage = await openStage({ target: await account, version: name, steps })
      try {
        for (const scenario of played) {
          await scenario.play(stage)
          if (steps.length > 0) await stage.check()
        }
      } finally {
        await stage.close()
      }
    }

    it.concurrent.each(scenarios.map((scenario) => [scenario.name, scenario] as const))('sees %s', (_, scenario) =>
      play([scenario]),
    )
    it.concurrent('sees all of it in one chat', () => play(scenarios), ALL_MS)
  })
}
