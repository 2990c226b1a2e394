import type { Capability } from '../capability.ts'

const comingSoon = (fields: Omit<Capability, 'status' | 'tools' | 'dependencies' | 'features'> & Partial<Capability>) =>
  ({ dependencies: [], features: [], ...fields, status: 'coming_soon', tools: [] }) satisfies Capability

export const sessionSchedule = comingSoon({
  id: 'session_schedule',
  name: 'Schedules',
  description: 'Lets the agent run a message in this session later, once or again and again.',
  category: 'productivity',
  icon: 'calendar-clock',
  features: ['schedules'],
})

export const research = comingSoon({
  id: 'research',
  name: 'Research',
  description: 'Lets the agent research a question over many sources.',
  category: 'web',
  icon: 'search',
})
