import type { Skill } from '../../../contract/skills.ts'
import type { Skill as SkillRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { presentSkill } from './present.ts'

/** Skills per page; the fields of each are at most 32 KiB. */
const SKILLS_AT_ONCE = 8

/** Lists the organization's skills, newest first. */
export const listSkills = (deps: Deps, { organizationId }: Actor): Pages<Skill> =>
  pages({
    atOnce: SKILLS_AT_ONCE,
    read: async ({ after, take }: PageStart<SkillRow>) => {
      const where = { organizationId, id: { lt: after?.id } }
      const rows = await deps.db.skill.findMany({ where, orderBy: { id: 'desc' }, take })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(presentSkill),
  })
