const { appendFileSync } = require('node:fs')
const { flushCompileCache } = require('node:module')
const { ModuleMocker } = require('jest-mock')
const { readEnded } = require('../../run/cpu.ts')

/**
 * Runs test files in the global scope of Jest's worker process, without a `vm` context. The mocks of a file are
 * restored at its end.
 */
class NativeEnvironment {
  constructor(_config, { testPath }) {
    this.file = testPath
    this.usedBefore = readUsage()
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
    this.writeUsage()
  }

  /**
   * Removes objects from what a test has thrown, whose message is made by then (`node:assert` is not used). Jest copies
   * them by recursion, so an error that refers to a socket or a query's plan would end the whole file with "Maximum call
   * stack size exceeded".
   */
  handleTestEvent({ name, error }) {
    if (name === 'test_fn_failure' || name === 'hook_failure' || name === 'error') removeObjects(error)
  }

  /** Notes the CPU time of the file for the table that `npm test` prints. */
  writeUsage() {
    if (process.env.TEST_CPU_FILE === undefined) return
    const { own, children } = readUsage()
    const usage = {
      file: this.file,
      ownSeconds: own - this.usedBefore.own,
      childrenSeconds: children - this.usedBefore.children,
    }
    appendFileSync(process.env.TEST_CPU_FILE, `${JSON.stringify(usage)}\n`)
  }
}

/** Removes the properties of an error that are objects, except its causes, whose own are removed. */
function removeObjects(error, depth = 0) {
  if (typeof error !== 'object' || error === null) return
  for (const key of Object.keys(error)) {
    if (typeof error[key] === 'object') delete error[key]
  }
  if (depth < 5) removeObjects(error.cause, depth + 1)
  else delete error.cause
}

/** Reads the CPU seconds of this process, and of its ended children, which only Linux reports. */
function readUsage() {
  const { user, system } = process.cpuUsage()
  return { own: (user + system) / 1e6, children: readEnded() }
}

module.exports = NativeEnvironment
