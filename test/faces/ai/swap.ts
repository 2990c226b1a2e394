import { askingScenarios } from './asking-scenarios.ts'
import { lossScenarios } from './loss-scenarios.ts'
import { plainScenarios } from './plain-scenarios.ts'
import { newAccount, openStage } from './stage.ts'
import type { VersionName } from './versions.ts'

const scenarios = [...plainScenarios, ...askingScenarios, ...lossScenarios]

/** Tests a page that is built with a version of the AI SDK against the service: each scenario alone, and all in one chat. */
export function describeSwap(name: VersionName): void {
  describe(`a chat of ${name}`, () => {
    // Concurrent tests begin before `beforeAll`.
    let account: ReturnType<typeof newAccount> | undefined

    it.concurrent.each(scenarios.map((scenario) => [scenario.name, scenario] as const))(
      'sees %s',
      async (_, scenario) => {
        account ??= newAccount()
        const stage = await openStage({ target: await account, version: name, steps: scenario.steps })
        try {
          await scenario.play(stage)
          if (scenario.steps.length > 0) await stage.check()
        } finally {
          await stage.close()
        }
      },
    )
  })
}
