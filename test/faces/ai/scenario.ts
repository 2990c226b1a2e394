import type { Stage } from './stage.ts'

/** Something that a page and its user do, and what the agent's model answers to it. */
export type Scenario = {
  name: string
  steps: object[]
  play(stage: Stage): Promise<void>
}

const WORDS = 'The quick brown fox jumps over the lazy dog, and then it has a rest. '
/** Step that writes for some seconds. */
export const slow = (times = 2, tokens_per_second = 8) => ({ text: WORDS.repeat(times), tokens_per_second })
