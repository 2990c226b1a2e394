const { createHash } = require('node:crypto')
const { default: Sequencer } = require('@jest/test-sequencer')

/** Faults wait most of the time, and some take long: they are through when this much of the other files is. */
const FAULTS_END = 0.85

/**
 * Test files in an order that Jest's seed decides: none may lean on another. `--seed` repeats an order. Those of faults
 * are spread evenly among the others, whose computing fills their waits, and are not left for the end.
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
