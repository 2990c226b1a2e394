/** npm start: Postgres, Redis, Temporal and the service itself, with nothing to configure; with --full also sign-in. */
import { describeAddresses } from '../dev/addresses.ts'
import { type AppProcess, startApp, waitUntilReady } from '../dev/app-process.ts'
import {
  checkPorts,
  claimDataFolder,
  listServicePorts,
  readApiPort,
  readServicePorts,
  serviceEnvironment,
  startDevelopmentServices,
  stopEarlierRun,
} from '../dev/development.ts'
import { fullModeKeys, listFullModePorts, startFullMode, stopEarlierProvider } from '../dev/full-mode.ts'
import type { RunningServices } from '../dev/services/index.ts'
import { settlesWithin } from '../dev/services/process.ts'
import { listenForStop, runLauncher, type StopRequest } from '../dev/stop-request.ts'
import { print, printError } from '../dev/terminal.ts'

/** Time for services that are still starting at Ctrl-C to become ready, so that they can be stopped in order. */
const START_GRACE_MS = 10_000

const isFull = process.argv.includes('--full')
/** Address of the API. With sign-in its host is AUTH_BASE_URL's, because the cookies are valid for that name only. */
const api = `http://${isFull ? 'localhost' : '127.0.0.1'}:${readApiPort()}`

async function announceWhenReady(addresses: string, cancelled: AbortSignal): Promise<void> {
  const url = `${api}/health/ready`
  const state = await waitUntilReady(url, cancelled)
  if (cancelled.aborted) return
  if (state === 'ready') print(`Ready after ${process.uptime().toFixed(1)} s.\n${addresses}`)
  else printError(`The app runs but ${url} did not answer 200 in time; see its log above.`)
}

/** Runs the app until it is asked to stop (0) or ends by itself (1). */
async function superviseApp(app: AppProcess, addresses: string, stop: StopRequest): Promise<number> {
  const cancellation = new AbortController()
  void announceWhenReady(addresses, cancellation.signal)
  const outcome = await Promise.race([stop.received, app.exited])
  cancellation.abort()
  void stop.forced.then(() => app.kill())
  await app.stop()
  if (outcome === 'stop') return 0
  printError(`\nThe app ended by itself (${outcome}); stopping the services.`)
  return 1
}

async function runWithServices(stop: StopRequest): Promise<number> {
  const onServiceDied = (sentence: string) => printError(`\n!!! ${sentence}\n!!! Restart with Ctrl-C and npm start.\n`)
  const starting = startDevelopmentServices(readServicePorts(), onServiceDied)
  const services = await Promise.race([starting, stop.received])
  if (services === 'stop') {
    void stop.forced.then(() => process.exit(130))
    const isStarted = await settlesWithin(
      starting.catch(() => {}),
      START_GRACE_MS,
    )
    if (isStarted) await starting.then((running) => running.stop()).catch(() => {})
    return 0
  }
  try {
    return await runApp(services, stop)
  } finally {
    await services.stop()
  }
}

async function runApp(services: RunningServices, stop: StopRequest): Promise<number> {
  const fullMode = isFull ? await startFullMode() : undefined
  try {
    const mode = fullMode?.environment ?? (await fullModeKeys())
    const environment = { ...serviceEnvironment(services), ...mode, PORT: String(readApiPort()) }
    const app = await startApp(environment)
    return await superviseApp(
      app,
      describeAddresses({ api, prefix: process.env.API_PREFIX ?? '', temporalUiUrl: services.temporalUiUrl, fullMode }),
      stop,
    )
  } finally {
    await fullMode?.stop()
  }
}

await runLauncher(async () => {
  const stop = listenForStop()
  const claim = await claimDataFolder()
  try {
    await stopEarlierRun()
    if (isFull) await stopEarlierProvider()
    await checkPorts([
      { variable: 'PORT', purpose: 'the API', port: readApiPort() },
      ...listServicePorts(readServicePorts()),
      ...(isFull ? listFullModePorts() : []),
    ])
    return await runWithServices(stop)
  } finally {
    await claim.release()
  }
})
