import type { CallScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { deleteStored, setStored } from './change.ts'
import { listStored, readSecret, readValue } from './read.ts'
import type { SessionStorage } from './session-storage.ts'

/** Opens a session's values and secrets for a tool call. */
export const openSessionStorage = (deps: Deps, scope: CallScope): SessionStorage => ({
  readValue: (key, part) => readValue(deps, scope, key, part),
  readSecret: (name) => readSecret(deps, scope, name),
  list: (kind, part) => listStored(deps, scope, kind, part),
  set: (kind, name, value) => setStored(deps, scope, kind, name, value),
  delete: (kind, name) => deleteStored(deps, scope, kind, name),
})
