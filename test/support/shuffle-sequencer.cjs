const { createHash } = require('node:crypto')
const { default: Sequencer } = require('@jest/test-sequencer')

/**
 * Test files in an order that Jest's seed decides: none may lean on another. `--seed` repeats an order. Those of faults
 * take long, and are not left for the end.
 */
class ShuffleSequencer extends Sequencer {
  constructor(options) {
    super(options)
    this.seed = options.globalConfig.seed
  }

  sort(tests) {
    const place = ({ path }) => {
      const hash = createHash('sha256').update(`${this.seed}/${path}`).digest()
      return hash.readUInt32BE() * (path.includes('/faults/') ? 0.7 : 1)
    }
    return [...tests].sort((left, right) => place(left) - place(right))
  }
}

module.exports = ShuffleSequencer
