import type { Deps } from '../deps.ts'
import type { SessionScope } from '../session-scope.ts'
import type { SessionSkills } from './session-skills.ts'

/** Opens a session's skills for a tool call. */
export const openSessionSkills = (_deps: Deps, _scope: SessionScope): SessionSkills => ({
  list: async () => [],
  read: async () => undefined,
})
