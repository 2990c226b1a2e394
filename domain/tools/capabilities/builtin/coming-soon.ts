import type { Capability } from '../capability.ts'

const comingSoon = (fields: Omit<Capability, 'status' | 'tools' | 'dependencies' | 'features'> & Partial<Capability>) =>
  ({ dependencies: [], features: [], ...fields, status: 'coming_soon', tools: [] }) satisfies Capability

export const research = comingSoon({
  id: 'research',
  name: 'Research',
  description: 'Lets the agent research a question over many sources.',
  category: 'web',
  icon: 'search',
})
