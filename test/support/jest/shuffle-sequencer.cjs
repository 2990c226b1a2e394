const { createHash } = require('node:crypto')
const { default: Sequencer } = require('@jest/test-sequencer')

/** Share of the run in which long files are started. None starts later, so that none runs alone at the end. */
const LONG_END = 0.8
/** Files that take longest, besides the fault tests; `npm test` prints the slowest. */
const LONG = [
  'record/retention',
  'service/client-tools',
  'service/durable',
  'service/no-credentials',
  'service/sse-lifecycle',
  'service/turn-answers',
  'service/without-worker',
  'unit/capabilities/virtual-bash',
]

/**
 * Orders test files by Jest's seed, so that none comes to depend on another. `--seed` repeats an order. Long files
 * are spread evenly among the others, which use the CPU while they wait, and do not come last.
 */
class ShuffleSequencer extends Sequencer {
  constructor(options) {
    super(options)
    this.seed = options.globalConfig.seed
  }

  sort(tests) {
    const isLong = ({ path }) => path.includes('/faults/') || LONG.some((name) => path.endsWith(`/${name}.test.ts`))
    const long = this.spread(tests.filter(isLong), LONG_END)
    const others = this.spread(
      tests.filter((test) => !isLong(test)),
      1,
    )
    return [...long, ...others].sort((left, right) => left.place - right.place).map(({ test }) => test)
  }

  spread(tests, end) {
    const draw = ({ path }) => createHash('sha256').update(`${this.seed}/${path}`).digest('hex')
    const shuffled = [...tests].sort((left, right) => (draw(left) < draw(right) ? -1 : 1))
    return shuffled.map((test, index) => ({ test, place: (index / shuffled.length) * end }))
  }
}

module.exports = ShuffleSequencer
