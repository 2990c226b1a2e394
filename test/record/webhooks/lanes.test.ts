import { newUuid } from '../../../domain/kit/ids.ts'
import { closeLane, wakeDueLanes } from '../../../domain/organization-events/webhooks/lanes.ts'
import { withWorkflows } from '../../support/by-hand.ts'
import { call } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())

describe('a sweep', () => {
  it('leaves a lane to its workflow, unless a delivery came after that had ended', async () => {
    const input = { url: 'https://hooks.example/', events: ['turn.completed'] }
    const { body } = await call(service.url, 'POST', '/v1/webhooks', input)
    const { db } = service.platform.deps
    const webhookId = toUuid(body.id)
    const laneId = newUuid()
    const queue = () =>
      db.$executeRaw`SELECT queue_webhook_delivery(${webhookId}::uuid, ${laneId}::uuid, ${newUuid()}::uuid, 'turn.completed', '{}')`
    let woken = 0
    const deps = withWorkflows(service.platform.deps, {
      wakeWebhook: async (lane) => {
        if (++woken > 1) return
        // A fast workflow, and a slow answer to the call that started it.
        await db.webhookDelivery.updateMany({ where: { webhookId }, data: { status: 'delivered' } })
        await closeLane(deps, lane)
        await queue()
      },
    })
    await queue()
    expect([await wakeDueLanes(deps), await wakeDueLanes(deps), await wakeDueLanes(deps), woken]).toEqual([1, 1, 0, 2])
  })
})
