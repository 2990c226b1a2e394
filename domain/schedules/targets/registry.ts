import type { ScheduleTarget } from '../../../contract/schedules.ts'
import type { Actor } from '../../kit/actor.ts'
import { invalid } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { checkHttpRequest } from './http-request-input.ts'
import { checkNoop } from './noop-input.ts'
import { checkSessionMessage } from './session-message-input.ts'
import type { CheckedInput, CheckInput } from './target.ts'

/** Targets of each type, by name, with the check of their input. */
const TARGETS: ReadonlyMap<string, ReadonlyMap<string, CheckInput>> = new Map([
  [
    'workflow',
    new Map([
      ['session_message', checkSessionMessage],
      ['agent_turn', checkSessionMessage],
    ]),
  ],
  [
    'activity',
    new Map([
      ['http_request', checkHttpRequest],
      ['noop', checkNoop],
    ]),
  ],
])

/** Target that has been checked, of a type and a name that exist. */
export type CheckedTarget = CheckedInput & { type: string; name: string }

/** Checks a target. Throws `invalid` for an unknown type or name, with a list of the known ones. */
export async function checkTarget(
  deps: Deps,
  actor: Actor,
  { type, name, input }: ScheduleTarget,
): Promise<CheckedTarget> {
  const ofType = TARGETS.get(type)
  if (ofType === undefined) throw invalid(`target.type: must be ${listed(TARGETS)}`)
  const check = ofType.get(name)
  if (check === undefined) throw invalid(`target.name: must be ${listed(ofType)} for the type ${type}`)
  return { type, name, ...(await check(deps, actor, input)) }
}

const listed = (known: ReadonlyMap<string, unknown>): string => [...known.keys()].join(' or ')
