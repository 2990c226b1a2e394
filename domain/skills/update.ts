import type { SkillId } from '../../contract/ids.ts'
import type { Skill, UpdateSkillRequest } from '../../contract/skills.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { lockOrganization } from '../lock-organization.ts'
import { replaceSkillMd } from './files.ts'
import { checkNameFree, columnsOf, TIMEOUT_MS } from './insert.ts'
import { presentSkill } from './present.ts'
import { requireSkill } from './read.ts'
import { readSkillMd, requireValid } from './skill-md.ts'

/**
 * Changes a skill's SKILL.md or status; its other files stay. Throws `not_found`, `unprocessable` with all problems of
 * the text, `conflict` for a name that is taken, and `too_many`.
 */
export async function patchSkill(
  deps: Deps,
  actor: Actor,
  id: SkillId,
  { skill_md: text, status }: UpdateSkillRequest,
): Promise<Skill> {
  const { organizationId } = actor
  const row = await requireSkill(deps, actor, id)
  if (text == null && status == null) return presentSkill(row)
  const owner = await deps.owners.ownerOf(organizationId)
  const fields = text == null ? undefined : requireValid(await readSkillMd(deps.threads.documents, text, owner))
  return deps.db.$transaction(
    async (tx) => {
      await lockOrganization(tx, organizationId)
      if (fields !== undefined) await checkNameFree(tx, organizationId, fields.name, id)
      const data = { ...(fields && columnsOf(fields)), status: status ?? undefined }
      const [changed] = await tx.skill.updateManyAndReturn({ where: { id, organizationId }, data })
      if (changed === undefined) throw notFound('Skill')
      if (text != null) await replaceSkillMd(tx, id, text)
      return presentSkill(changed)
    },
    { timeout: TIMEOUT_MS },
  )
}

/** Deletes a skill with its files. Throws `not_found`. */
export async function deleteSkill(deps: Deps, { organizationId }: Actor, id: SkillId): Promise<void> {
  const { count } = await deps.db.skill.deleteMany({ where: { id, organizationId } })
  if (count === 0) throw notFound('Skill')
}
