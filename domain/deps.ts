export type { Deps, Retention } from './upkeep/deps.ts'

/** Checks each dependency: 'ok', or the reason why it is not. */
export type Readiness = () => Promise<{ postgres: string; redis: string; temporal: string; worker?: string }>
