export type { Deps, Retention } from './upkeep/deps.ts'

export type { Readiness } from './upkeep/health/readiness.ts'
