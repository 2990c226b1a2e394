/** Service shared by many test files: `main.ts <flavour>`. The first line of output has its addresses. */
import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import { ADMIN_VARIABLES, FULL_MODE } from '../auth.ts'
import { createLab } from '../lab.ts'
import { startService } from '../service.ts'
import type { Addresses, Flavour } from './service.ts'

const FLAVOURS: Record<Flavour, Record<string, string>> = {
  open: {},
  full: { ...FULL_MODE, ...ADMIN_VARIABLES },
}

const [flavour] = process.argv.slice(2)
const environment = FLAVOURS[flavour as Flavour]
if (environment === undefined) throw new Error(`there is no flavour ${flavour}`)

const lab = createLab()
const service = await startService({ environment, capabilities: [lab.capability] })

/** Control server: `GET /<uuid>` returns an organization's lab tool runs in this process. */
const control = createServer((request, response) => {
  const organizationId = request.url?.slice(1)
  response.end(JSON.stringify(lab.runs.filter((run) => run.organizationId === organizationId)))
})
await new Promise<void>((resolve) => control.listen(0, '127.0.0.1', resolve))

const addresses: Addresses = {
  url: service.url,
  lab: `http://127.0.0.1:${(control.address() as AddressInfo).port}`,
  database: service.config.DATABASE_URL,
}
process.stdout.write(`${JSON.stringify(addresses)}\n`)
flushCompileCache()

process.once('SIGTERM', () => {
  control.close()
  control.closeAllConnections()
  // `stop` throws if a secret was logged, which fails the whole run.
  service.stop().then(
    () => process.exit(0),
    (error) => {
      process.stderr.write(`the shared service "${flavour}": ${error instanceof Error ? error.message : error}\n`)
      process.exit(1)
    },
  )
})
