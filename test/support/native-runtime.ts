/**
 * Number of workers that use the file's one native runtime. The last to stop shuts it down, because Jest cannot exit
 * otherwise.
 */
let runtimes = 0
let installed: Promise<void> | undefined
let closed: Promise<void> = Promise.resolve()
export async function openRuntime(): Promise<void> {
  runtimes++
  installed ??= closed.then(installRuntime)
  await installed
}
async function installRuntime(): Promise<void> {
  const { Runtime } = await import('@temporalio/worker')
  const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }
  Runtime.install({ shutdownSignals: [], logger: silent, telemetryOptions: { logging: { forward: {} } } })
}
export async function closeRuntime(): Promise<void> {
  if (--runtimes > 0) return
  installed = undefined
  closed = import('@temporalio/worker').then(({ Runtime }) => Runtime.instance().shutdown())
  await closed
}
