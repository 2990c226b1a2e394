import type { Skill } from '../../../prisma/generated/client.ts'
import type { Capability } from '../capabilities/capability.ts'
import { escapeTags } from '../capabilities/prompt.ts'

/** Returns the capability of a skill: its name and description in the prompt, and the tools of skills. */
export const skillCapability = (row: Skill): Capability => ({
  id: `skill:${row.id}`,
  name: row.name,
  description: row.description,
  status: row.status === 'active' ? 'available' : 'disabled',
  category: 'skill',
  icon: 'graduation-cap',
  dependencies: ['skills'],
  features: [],
  systemPrompt: escapeTags(`Skill ${row.name}: ${row.description.trim().replace(/\s+/g, ' ')}`),
  tools: [],
})
