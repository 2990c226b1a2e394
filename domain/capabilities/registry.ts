import type { Capability } from './capability.ts'

/** The service's own capabilities, in the order in which they are listed. */
export const builtinCapabilities: Capability[] = []
