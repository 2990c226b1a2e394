import type { CreateSkillRequest, Skill } from '../../../contract/skills.ts'
import type { Actor } from '../../kit/actor.ts'
import { createOnce } from '../../kit/create-once.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import type { Deps } from '../deps.ts'
import { filesOfText } from './files.ts'
import { insertSkill } from './insert.ts'
import { presentSkill } from './present.ts'
import { readSkillMd, requireValid } from './skill-md.ts'

/**
 * Creates a skill from the text of a SKILL.md. Throws `unprocessable` with all problems of the text, `conflict` for a
 * taken name and at the quota, and `too_many`.
 */
export async function createSkill(
  deps: Deps,
  actor: Actor,
  { skill_md }: CreateSkillRequest,
  attempt: CreationAttempt,
): Promise<Skill> {
  const { organizationId } = actor
  const row = await createOnce(attempt, {
    find: (id) => deps.db.skill.findFirst({ where: { id, organizationId } }),
    insert: async (id) => {
      const owner = await deps.owners.ownerOf(organizationId)
      const fields = requireValid(await readSkillMd(deps.threads.documents, skill_md, owner))
      return insertSkill(deps, actor, { id, source: 'markdown', fields, files: filesOfText(skill_md) })
    },
  })
  return presentSkill(row)
}
