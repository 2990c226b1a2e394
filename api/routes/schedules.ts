import { executionEndpoints, scheduleEndpoints } from '../../contract/schedules.ts'
import type { Deps } from '../../domain/deps.ts'
import { createSchedule } from '../../domain/schedules/create.ts'
import { deleteSchedule } from '../../domain/schedules/delete.ts'
import { pauseSchedule, resumeSchedule } from '../../domain/schedules/enable.ts'
import { getExecution, listExecutions } from '../../domain/schedules/executions/executions.ts'
import { listSchedules } from '../../domain/schedules/list.ts'
import { getSchedule } from '../../domain/schedules/read.ts'
import { readStats } from '../../domain/schedules/stats.ts'
import { triggerSchedule } from '../../domain/schedules/trigger.ts'
import { patchSchedule } from '../../domain/schedules/update.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function scheduleRoutes(handle: Handle, deps: Deps): void {
  handle(scheduleEndpoints.list, async ({ actor, query, ctx }) => {
    const { pages, total } = await listSchedules(deps, actor, query)
    return answerList(ctx, deps.log, linesOf(pages), { more: { total } })
  })
  handle(scheduleEndpoints.create, async ({ actor, body, once }) =>
    reply(201, await once((attempt) => createSchedule(deps, actor, body, attempt))),
  )
  handle(scheduleEndpoints.get, async ({ actor, params }) =>
    reply(200, await getSchedule(deps, actor, params.schedule_id)),
  )
  handle(scheduleEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchSchedule(deps, actor, params.schedule_id, body)),
  )
  handle(scheduleEndpoints.delete, async ({ actor, params }) => {
    await deleteSchedule(deps, actor, params.schedule_id)
    return reply(204, undefined)
  })
  handle(scheduleEndpoints.pause, async ({ actor, params }) =>
    reply(200, await pauseSchedule(deps, actor, params.schedule_id)),
  )
  handle(scheduleEndpoints.resume, async ({ actor, params }) =>
    reply(200, await resumeSchedule(deps, actor, params.schedule_id)),
  )
  handle(scheduleEndpoints.trigger, async ({ actor, params, once }) =>
    reply(200, await once((attempt) => triggerSchedule(deps, actor, params.schedule_id, attempt))),
  )
  handle(scheduleEndpoints.stats, async ({ actor, params }) =>
    reply(200, await readStats(deps, actor, params.schedule_id)),
  )
  handle(scheduleEndpoints.executions, async ({ actor, params, query, ctx }) => {
    const { pages, total } = await listExecutions(deps, actor, params.schedule_id, query)
    return answerList(ctx, deps.log, linesOf(pages), { more: { total } })
  })
  handle(executionEndpoints.get, async ({ actor, params }) =>
    reply(200, await getExecution(deps, actor, params.execution_id)),
  )
}
