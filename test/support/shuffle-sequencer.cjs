const { createHash } = require('node:crypto')
const { default: Sequencer } = require('@jest/test-sequencer')

/** Test files in an order that Jest's seed decides: none may lean on another. `--seed` repeats an order. */
class ShuffleSequencer extends Sequencer {
  constructor(options) {
    super(options)
    this.seed = options.globalConfig.seed
  }

  sort(tests) {
    const place = (test) => createHash('sha256').update(`${this.seed}/${test.path}`).digest('hex')
    return [...tests].sort((left, right) => (place(left) < place(right) ? -1 : 1))
  }
}

module.exports = ShuffleSequencer
