import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Router from '@koa/router'
import Koa from 'koa'
import { pino } from 'pino'
import { ARRIVAL_LIMITS, type ArrivalLimits, limitArrival } from '../../api/http/arrival.ts'
import { answerErrors } from '../../api/http/errors.ts'
import { createHandle, type Handle, type HandleOptions } from '../../api/http/handle.ts'
import type { Endpoint } from '../../contract/kit/endpoint.ts'
import { unavailability } from '../../platform/unavailable.ts'

/** Returns the endpoint with its literal types, as an endpoint group does. */
export const defineEndpoint = <const E extends Endpoint>(endpoint: E): E => endpoint

export type PlantedApp = { url: string; server: Server; logged: string[]; close(): Promise<void> }

/** Serves endpoints defined by a test, using only the service's HTTP layer. */
export async function plant(
  register: (handle: Handle, log: pino.Logger) => void,
  { arrival, ...options }: Partial<HandleOptions> & { arrival?: Partial<ArrivalLimits> } = {},
): Promise<PlantedApp> {
  const logged: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => logged.push(line) })
  const router = new Router()
  const handle = createHandle(router, {
    prefix: '',
    checkAnswers: true,
    log,
    authenticate: async () => undefined,
    limitCaller: async () => {},
    ownerOf: async (organizationId) => organizationId,
    runOnce: (_actor, _request, create) => create({}),
    ...options,
  })
  register(handle, log)
  const app = new Koa()
  app.silent = true
  app.use(limitArrival({ ...ARRIVAL_LIMITS, ...arrival }))
  app.use(answerErrors({ log, unavailability }))
  app.use(router.routes())
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}`, server, logged, close }
}
