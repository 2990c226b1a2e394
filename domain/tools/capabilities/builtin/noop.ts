import type { Capability } from '../capability.ts'

export const noop: Capability = {
  id: 'noop',
  name: 'No operation',
  description: 'Adds nothing, for testing how capabilities are configured.',
  status: 'available',
  category: 'testing',
  dependencies: [],
  features: [],
  tools: [],
}
