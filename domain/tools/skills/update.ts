import type { SkillId } from '../../../contract/kit/ids.ts'
import type { Skill, UpdateSkillRequest } from '../../../contract/skills.ts'
import type { Prisma, Skill as SkillRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit, audited } from '../../kit/audit/entry.ts'
import { notFound } from '../../kit/errors.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import type { Deps } from '../deps.ts'
import { replaceSkillMd } from './files.ts'
import { checkNameFree, columnsOf, TIMEOUT_MS, type ValidFields } from './insert.ts'
import { presentSkill } from './present.ts'
import { requireSkill } from './read.ts'
import { readSkillMd, requireValid } from './skill-md.ts'

/**
 * Changes a skill's SKILL.md or status; its other files stay. Throws `not_found`, `unprocessable` with all problems of
 * the text, `conflict` for a taken name, and `too_many`.
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
  return changeSkill(deps, actor, id, { fields, ...(status != null && { status }) }, async (tx) => {
    if (text != null) await replaceSkillMd(tx, id, text)
  })
}

/** Changes a skill's row, and its files with `changeFiles`. Throws `not_found`, and `conflict` for a taken name. */
export const changeSkill = (
  deps: Deps,
  actor: Actor,
  id: SkillId,
  { fields, ...columns }: { fields: ValidFields | undefined } & Partial<Pick<SkillRow, 'status' | 'source'>>,
  changeFiles: (tx: Prisma.TransactionClient) => Promise<void>,
): Promise<Skill> =>
  deps.db.$transaction(
    async (tx) => {
      const { organizationId } = actor
      await lockOrganization(tx, organizationId)
      if (fields !== undefined) await checkNameFree(tx, organizationId, fields.name, id)
      const data = { ...(fields && columnsOf(fields)), ...columns }
      const [changed] = await tx.skill.updateManyAndReturn({ where: { id, organizationId }, data })
      if (changed === undefined) throw notFound('Skill')
      await changeFiles(tx)
      const details = { fields: [...(fields === undefined ? [] : ['content']), ...Object.keys(columns)] }
      await audit(tx, actor, { action: 'skill.update', target: id, details })
      return presentSkill(changed)
    },
    { timeout: TIMEOUT_MS },
  )

/** Deletes a skill with its files. Throws `not_found`. */
export async function deleteSkill(deps: Deps, actor: Actor, id: SkillId): Promise<void> {
  await audited(deps, actor, { action: 'skill.delete', target: id }, async (tx) => {
    const { count } = await tx.skill.deleteMany({ where: { id, organizationId: actor.organizationId } })
    if (count === 0) throw notFound('Skill')
  })
}
