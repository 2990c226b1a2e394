export type { Deps, Retention } from './upkeep/deps.ts'

/** Checks each dependency: 'ok', or the reason for its failure. */
export type Readiness = () => Promise<{ postgres: string; redis: string; temporal: string; worker?: string }>
