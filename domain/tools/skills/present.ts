import type { Skill } from '../../../contract/skills.ts'
import type { Skill as SkillRow } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'

export const presentSkill = (row: SkillRow): Skill => ({
  id: toId('skill', row.id),
  ref: `skill:${row.id}`,
  name: row.name,
  description: row.description,
  source_type: row.source,
  status: row.status,
  version: row.version,
  license: row.license,
  compatibility: row.compatibility,
  // Written from a map of keys and values.
  metadata: row.metadata as Record<string, unknown>,
  allowed_tools: row.allowedTools,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
