import { waitFor } from '../support/http.ts'
import { killProcesses, startWorkerProcess } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { startService } from '../support/service.ts'

afterAll(killProcesses)

describe("a worker's log", () => {
  it('is lines of JSON, also what the Temporal library has to say while Temporal is away', async () => {
    const proxy = await startProxy(process.env.TEMPORAL_ADDRESS ?? '')
    const service = await startService({ worker: false, environment: { TEMPORAL_ADDRESS: proxy.address } })
    try {
      const { lines } = await startWorkerProcess(service)
      proxy.cut()
      await waitFor(async () => lines.some((line) => line.includes('gRPC call')), 'the library to complain', 25_000)
      const others = lines.filter((line) => !/^\{.*\}$/.test(line))
      expect(others).toEqual([])
    } finally {
      await killProcesses()
      await service.stop()
      await proxy.close()
    }
  }, 40_000)
})
