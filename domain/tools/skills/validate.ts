import type { CreateSkillRequest, SkillValidationResult } from '../../../contract/skills.ts'
import type { Actor } from '../../kit/actor.ts'
import type { Deps } from '../deps.ts'
import { readSkillMd } from './skill-md.ts'

/** Returns the problems of the text of a SKILL.md. Throws `too_many`. */
export async function validateSkill(
  deps: Deps,
  { organizationId }: Actor,
  { skill_md }: CreateSkillRequest,
): Promise<SkillValidationResult> {
  const owner = await deps.owners.ownerOf(organizationId)
  const { fields, errors, warnings } = await readSkillMd(deps.threads.documents, skill_md, owner)
  const { name = null, description = null } = fields
  return { valid: errors.length === 0, name, description, errors, warnings }
}
