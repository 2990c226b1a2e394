import type { SkillId } from '../../../contract/kit/ids.ts'
import type { Skill } from '../../../contract/skills.ts'
import type { Skill as SkillRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { presentSkill } from './present.ts'

/** Returns a skill. Throws `not_found`. */
export const getSkill = async (deps: Deps, actor: Actor, id: SkillId): Promise<Skill> =>
  presentSkill(await requireSkill(deps, actor, id))

/** Returns the row of a skill of the organization. Throws `not_found`. */
export async function requireSkill(deps: Deps, { organizationId }: Actor, id: SkillId): Promise<SkillRow> {
  const row = await deps.db.skill.findFirst({ where: { id, organizationId } })
  if (row === null) throw notFound('Skill')
  return row
}
