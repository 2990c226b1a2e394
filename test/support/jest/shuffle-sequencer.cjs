const { createHash } = require('node:crypto')
const { default: Sequencer } = require('@jest/test-sequencer')

/** Share of the files that count as long. */
const LONG_SHARE = 0.25
/** Share of the run over which long files are started: none starts after it, so that none is run alone in the end. */
const LONG_END = 0.75

/**
 * Orders test files by Jest's seed, so that none comes to depend on another. `--seed` repeats an order. Long files are
 * spread evenly among the others, which use the CPU while they wait, and do not come last. Jest knows them by the
 * times of the last run on this machine, or else by their size.
 */
class ShuffleSequencer extends Sequencer {
  constructor(options) {
    super(options)
    this.seed = options.globalConfig.seed
  }

  sort(tests) {
    const longestFirst = super.sort([...tests])
    const count = Math.ceil(tests.length * LONG_SHARE)
    const long = this.spread(longestFirst.slice(0, count), LONG_END)
    const others = this.spread(longestFirst.slice(count), 1)
    return [...long, ...others].sort((left, right) => left.place - right.place).map(({ test }) => test)
  }

  spread(tests, end) {
    const draw = ({ path }) => createHash('sha256').update(`${this.seed}/${path}`).digest('hex')
    const shuffled = [...tests].sort((left, right) => (draw(left) < draw(right) ? -1 : 1))
    return shuffled.map((test, index) => ({ test, place: (index / shuffled.length) * end }))
  }
}

module.exports = ShuffleSequencer
