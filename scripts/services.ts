/** npm run services: Postgres, Redis and Temporal alone, for `npm run start:api` and `npm run start:worker`. */
import {
  checkPorts,
  claimDataFolder,
  listServicePorts,
  readServicePorts,
  serviceEnvironment,
  startDevelopmentServices,
  stopEarlierRun,
} from '../dev/development.ts'
import { listenForStop, runLauncher } from '../dev/stop-request.ts'
import { print, printError } from '../dev/terminal.ts'

await runLauncher(async () => {
  const stop = listenForStop()
  const claim = await claimDataFolder()
  try {
    const ports = readServicePorts()
    await stopEarlierRun()
    await checkPorts(listServicePorts(ports))
    const services = await startDevelopmentServices(ports, (sentence) => printError(`\n!!! ${sentence}\n`))
    print('\nFor the terminals that run the API and the worker:\n')
    for (const [name, value] of Object.entries(serviceEnvironment(services))) print(`export ${name}='${value}'`)
    await stop.received
    await services.stop()
    return 0
  } finally {
    await claim.release()
  }
})
