import { DurableHealth } from '../../../contract/durable.ts'
import { judgeHealth, type ServiceHealth } from '../../../domain/upkeep/health/health.ts'

const FINE: ServiceHealth = {
  workers: 2,
  backlog: { tasks: 0, oldestMs: 0 },
  turns: { running: 3, failed: 0, ended: 40 },
  executions: { running: 0, failed: 0, ended: 0 },
  retrying: 0,
  stalled: 0,
}
const judge = (differing: Partial<ServiceHealth>) => {
  const health = judgeHealth({ ...FINE, ...differing })
  DurableHealth.parse(health)
  return health
}

describe('the health of durable execution', () => {
  it('is healthy without a reason', () => {
    expect(judge({})).toEqual({
      status: 'healthy',
      reasons: [],
      workers: 2,
      task_queue_backlog: 0,
      turns: { running: 3, failed: 0, retrying: 0, stalled: 0 },
      executions: { running: 0, failed: 0 },
    })
  })

  it('is degraded without a worker', () => {
    expect(judge({ workers: 0 })).toMatchObject({ status: 'degraded', reasons: ['No worker polls the task queue.'] })
  })

  it('is degraded when Temporal says nothing, and unknown values are not 0', () => {
    expect(
      judge({ workers: null, backlog: null, turns: null, executions: null, retrying: null, stalled: null }),
    ).toEqual({
      status: 'degraded',
      reasons: ['Temporal does not answer.'],
      workers: null,
      task_queue_backlog: null,
      turns: { running: null, failed: null, retrying: null, stalled: null },
      executions: { running: null, failed: null },
    })
  })

  it.each([
    ['who polls', { workers: null, backlog: null }, 'Temporal does not say who polls the task queue.'],
    ['how the turns are', { turns: null }, 'Temporal does not count the turns.'],
    ['how the executions are', { executions: null }, 'Temporal does not count the scheduled executions.'],
  ])('is degraded when Temporal does not say %s', (_, differing, reason) => {
    expect(judge(differing)).toMatchObject({ status: 'degraded', reasons: [reason] })
  })

  it('is not degraded by a server that cannot report its backlog', () => {
    expect(judge({ backlog: null })).toMatchObject({ status: 'healthy', reasons: [], task_queue_backlog: null })
  })

  it.each([
    [10_000, 'healthy'],
    [10_001, 'warning'],
  ])('after tasks have waited for %d ms is %s', (oldestMs, status) => {
    const health = judge({ backlog: { tasks: 7, oldestMs } })
    expect(health).toMatchObject({ status, task_queue_backlog: 7 })
    expect(health.reasons).toHaveLength(status === 'healthy' ? 0 : 1)
  })

  it.each([
    ['turns', 4, 40, 'healthy'],
    ['turns', 5, 40, 'warning'],
    ['turns', 1, 1, 'warning'],
    ['executions', 1, 10, 'healthy'],
    ['executions', 2, 10, 'warning'],
  ] as const)('of %s where %d of %d failed is %s', (what, failed, ended, status) => {
    const health = judge({ [what]: { running: 1, failed, ended } })
    expect(health).toMatchObject({ status, [what]: { running: 1, failed } })
    expect(health.reasons).toHaveLength(status === 'healthy' ? 0 : 1)
  })

  it('has every reason, the more serious ones first', () => {
    const health = judge({
      workers: 0,
      backlog: { tasks: 1, oldestMs: 20_000 },
      turns: { running: 0, failed: 1, ended: 2 },
    })
    expect(health.status).toBe('degraded')
    expect(health.reasons.map((reason) => reason.split(' ').slice(0, 2).join(' '))).toEqual([
      'No worker',
      'Tasks have',
      'More than',
    ])
  })
})
