import type { Deps as Below } from '../events/deps.ts'
import type { AuthSettings } from './auth/settings.ts'

export type Deps = Below & { auth: AuthSettings }
