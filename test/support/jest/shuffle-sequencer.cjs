const { createHash } = require('node:crypto')
const { default: Sequencer } = require('@jest/test-sequencer')

/**
 * Share of the run over which fault tests are started. They mostly wait and some take long, so none starts after it.
 */
const FAULTS_END = 0.85

/**
 * Orders test files by Jest's seed, so that none comes to depend on another. `--seed` repeats an order. Fault tests are
 * spread evenly among the others, which use the CPU while they wait, and do not come last.
 */
class ShuffleSequencer extends Sequencer {
  constructor(options) {
    super(options)
    this.seed = options.globalConfig.seed
  }

  sort(tests) {
    const isFault = ({ path }) => path.includes('/faults/')
    const faults = this.spread(tests.filter(isFault), FAULTS_END)
    const others = this.spread(
      tests.filter((test) => !isFault(test)),
      1,
    )
    return [...faults, ...others].sort((left, right) => left.place - right.place).map(({ test }) => test)
  }

  spread(tests, end) {
    const draw = ({ path }) => createHash('sha256').update(`${this.seed}/${path}`).digest('hex')
    const shuffled = [...tests].sort((left, right) => (draw(left) < draw(right) ? -1 : 1))
    return shuffled.map((test, index) => ({ test, place: (index / shuffled.length) * end }))
  }
}

module.exports = ShuffleSequencer
