const { flushCompileCache } = require('node:module')
const { ModuleMocker } = require('jest-mock')

/**
 * Runs test files in the global scope of Jest's worker process, without a `vm` context. The mocks of a file are
 * restored at its end.
 */
class NativeEnvironment {
  constructor() {
    this.global = globalThis
    this.moduleMocker = new ModuleMocker(globalThis)
    globalThis.jest = this.moduleMocker
    // Jest replaces both for each file.
    this.replaced = { console: globalThis.console, exit: process.exit }
  }

  getVmContext() {
    return null
  }

  exportConditions() {
    return ['node']
  }

  async setup() {
    // Jest's 100 frames make each refused request expensive.
    Error.stackTraceLimit = 25
  }

  async teardown() {
    // For the processes that later files start.
    flushCompileCache()
    this.moduleMocker.restoreAllMocks()
    globalThis.console = this.replaced.console
    process.exit = this.replaced.exit
  }
}

module.exports = NativeEnvironment
