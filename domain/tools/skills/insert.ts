import type { Prisma, Skill as SkillRow, SkillSource } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { conflict, quotaExceeded } from '../../kit/errors.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import type { Deps } from '../deps.ts'
import { insertFiles, type NewFile } from './files.ts'
import type { SkillFields } from './skill-fields.ts'

/** Valid fields of a skill. */
export type ValidFields = Required<SkillFields>

type NewSkill = { id: string; source: SkillSource; fields: ValidFields; files: NewFile[] }

/** Time limit for storing a skill, including the wait for the organization's lock. */
export const TIMEOUT_MS = 30_000

/**
 * Inserts a skill with its files; undefined if another run of the request has created it. Throws `conflict` at the
 * quota and for a taken name.
 */
export const insertSkill = (
  deps: Deps,
  actor: Actor,
  { id, source, fields, files }: NewSkill,
): Promise<SkillRow | undefined> =>
  deps.db.$transaction(
    async (tx) => {
      const { organizationId } = actor
      await lockOrganization(tx, organizationId)
      if ((await tx.skill.count({ where: { organizationId } })) >= deps.quotas.skills) {
        throw quotaExceeded(`The organization has ${deps.quotas.skills} skills, which is the limit; delete one first`)
      }
      await checkNameFree(tx, organizationId, fields.name, id)
      const data = { id, organizationId, source, ...columnsOf(fields) }
      const [row] = await tx.skill.createManyAndReturn({ data: [data], skipDuplicates: true })
      if (row === undefined) return undefined
      await insertFiles(tx, id, files)
      await audit(tx, actor, { action: 'skill.create', target: id })
      return row
    },
    { timeout: TIMEOUT_MS },
  )

/** Throws `conflict` if another skill of the organization has the name. */
export async function checkNameFree(
  tx: Prisma.TransactionClient,
  organizationId: string,
  name: string,
  id: string,
): Promise<void> {
  if ((await tx.skill.count({ where: { organizationId, name, id: { not: id } } })) > 0) {
    throw conflict(`name: the organization already has a skill ${name}; change or delete that one`)
  }
}

/** Returns the columns of a skill's fields. */
export const columnsOf = ({ metadata, ...fields }: ValidFields) => ({
  ...fields,
  // Parsed from YAML, it has only JSON values.
  metadata: metadata as Prisma.InputJsonObject,
})
