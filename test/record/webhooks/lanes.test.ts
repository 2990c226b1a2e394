import type { ServerResponse } from 'node:http'
import type { Deps } from '../../../domain/deps.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../../../domain/kit/ids.ts'
import { deliverNext } from '../../../domain/organization-events/webhooks/deliver.ts'
import { closeLane, wakeDueLanes } from '../../../domain/organization-events/webhooks/lanes.ts'
import { withWorkflows } from '../../support/by-hand.ts'
import { call } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startService({ worker: false, environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
})
afterAll(async () => {
  await service.stop()
  await receiver.close()
})

const NEVER = new AbortController().signal

/** Adds a webhook with one delivery, whose lane no workflow runs. */
async function addLane() {
  const input = { url: receiver.url, events: ['turn.completed'] }
  const path = `/v1/webhooks/${(await call(service.url, 'POST', '/v1/webhooks', input)).body.id}`
  const { db } = service.platform.deps
  const webhookId = toUuid(path.slice('/v1/webhooks/'.length))
  const lane = { organizationId: DEFAULT_ORGANIZATION_UUID, webhookId, laneId: newUuid() }
  const event = JSON.stringify({ agent_id: null, session_id: null, turn_id: null, data: {}, created_at: new Date() })
  const queue = () => db.$executeRaw`
    SELECT queue_webhook_delivery(${webhookId}::uuid, ${lane.laneId}::uuid, ${newUuid()}::uuid, 'turn.completed', ${event}::jsonb)`
  await queue()
  return {
    ...{ path, lane, queue },
    statuses: async () => {
      const rows = await db.webhookDelivery.findMany({ where: { webhookId }, orderBy: { position: 'asc' } })
      return rows.map(({ status }) => status)
    },
    /** Does what a workflow does: delivers, and closes the lane. */
    finish: async () => {
      await db.webhookDelivery.updateMany({ where: { webhookId }, data: { status: 'delivered' } })
      await closeLane(service.platform.deps, lane)
    },
    dueInMs: async () => {
      const row = await db.webhookLane.findFirstOrThrow({ where: { webhookId } })
      return row.dueAt.getTime() - Date.now()
    },
  }
}

/** Has another process take the lanes that are due, and die before it calls Temporal. */
const takeAndDie = () =>
  new Promise<void>((resolve) => {
    const wakeWebhook = () => {
      resolve()
      return new Promise<void>(() => {})
    }
    void wakeDueLanes(withWorkflows(service.platform.deps, { wakeWebhook }))
  })

describe('a lane', () => {
  type Lane = Awaited<ReturnType<typeof addLane>>
  const renew = async ({ finish, queue }: Lane) => {
    await finish()
    await queue()
  }
  it.each<[what: string, meanwhile: (lane: Lane) => Promise<unknown>, minutes: [above: number, most: number]]>([
    ['is left to its workflow', async () => {}, [4, 5]],
    ['stays due when it is new, because its workflow has ended', renew, [-1, 0]],
    [
      'is soon due when it is new, and a process that died had taken it',
      (lane) => renew(lane).then(takeAndDie),
      [0, 1],
    ],
  ])('%s', async (_, meanwhile, [above, most]) => {
    const lane = await addLane()
    // A slow answer to the call that starts the workflow.
    await wakeDueLanes(withWorkflows(service.platform.deps, { wakeWebhook: () => meanwhile(lane).then(() => {}) }))
    const minutes = (await lane.dueInMs()) / 60_000
    expect(minutes).toBeGreaterThan(above)
    expect(minutes).toBeLessThanOrEqual(most)
    await lane.finish()
  })
})

describe('an attempt', () => {
  it('that another has overtaken disables no webhook', async () => {
    const { path, lane, statuses } = await addLane()
    const held = Promise.withResolvers<ServerResponse>()
    receiver.answer = held.resolve
    const overtaken = deliverNext(service.platform.deps, lane, NEVER)
    const response = await held.promise
    receiver.answer = (other) => other.writeHead(204).end()
    expect(await deliverNext(service.platform.deps, lane, NEVER)).toEqual({ outcome: 'done' })
    response.writeHead(410).end()
    expect(await overtaken).toEqual({ outcome: 'next' })
    expect([await statuses(), (await call(service.url, 'GET', path)).body.enabled]).toEqual([['delivered'], true])
  })

  it('of a disabled webhook fails nothing that came once it was enabled', async () => {
    const { path, lane, queue, statuses } = await addLane()
    const { deps } = service.platform
    await call(service.url, 'PATCH', path, { enabled: false })
    const db = deps.db.$extends({
      query: {
        webhook: {
          findFirst: async ({ args, query }) => {
            const found = await query(args)
            await call(service.url, 'PATCH', path, { enabled: true })
            await queue()
            return found
          },
        },
      },
    })
    expect(await deliverNext({ ...deps, db: db as unknown as Deps['db'] }, lane, NEVER)).toEqual({ outcome: 'next' })
    expect(await statuses()).toEqual(['pending', 'pending'])
  })
})
