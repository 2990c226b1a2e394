const { pathToFileURL } = require('node:url')
const { default: Runtime } = require('jest-runtime')

/** Key under which Jest's framework keeps its event handlers, to which each test file adds its own. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS')

/**
 * Imports test files with Node's own loader. Modules are loaded once for all files that a worker process runs, from
 * Node's compile cache, instead of once for each file. See docs/decisions/0017-tests-as-native-modules.md.
 */
class NativeRuntime extends Runtime {
  /** Loads the test framework anew, because it holds the state of one test file. */
  requireInternalModule(file) {
    delete globalThis[EVENT_HANDLERS]
    delete require.cache[file]
    return require(file)
  }

  unstable_shouldLoadAsEsm() {
    return true
  }

  unstable_importModule(file) {
    return import(pathToFileURL(file))
  }
}

module.exports = NativeRuntime
