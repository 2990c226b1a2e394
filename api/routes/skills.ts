import { skillEndpoints } from '../../contract/skills.ts'
import type { Deps } from '../../domain/deps.ts'
import { openSkillContent } from '../../domain/tools/skills/content.ts'
import { createSkill } from '../../domain/tools/skills/create.ts'
import { listSkills } from '../../domain/tools/skills/list.ts'
import { getSkill } from '../../domain/tools/skills/read.ts'
import { deleteSkill, patchSkill } from '../../domain/tools/skills/update.ts'
import { replaceSkillContent, uploadSkill } from '../../domain/tools/skills/upload.ts'
import { validateSkill } from '../../domain/tools/skills/validate.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function skillRoutes(handle: Handle, deps: Deps): void {
  handle(skillEndpoints.list, async ({ actor, ctx }) => answerList(ctx, deps.log, linesOf(listSkills(deps, actor))))
  handle(skillEndpoints.create, async ({ actor, body, once }) =>
    reply(201, await once((attempt) => createSkill(deps, actor, body, attempt))),
  )
  handle(skillEndpoints.upload, async ({ actor, body, once }) =>
    reply(201, await uploadSkill(deps, actor, body.file.chunks, once)),
  )
  handle(skillEndpoints.validate, async ({ actor, body }) => reply(200, await validateSkill(deps, actor, body)))
  handle(skillEndpoints.get, async ({ actor, params }) => reply(200, await getSkill(deps, actor, params.skill_id)))
  handle(skillEndpoints.content, async ({ actor, params, ctx }) => {
    const { skillMd, files } = await openSkillContent(deps, actor, params.skill_id)
    return answerList(ctx, deps.log, linesOf(files), { key: 'files', more: { skill_md: skillMd } })
  })
  handle(skillEndpoints.replaceContent, async ({ actor, params, body }) =>
    reply(200, await replaceSkillContent(deps, actor, params.skill_id, body.file.chunks)),
  )
  handle(skillEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchSkill(deps, actor, params.skill_id, body)),
  )
  handle(skillEndpoints.delete, async ({ actor, params }) => {
    await deleteSkill(deps, actor, params.skill_id)
    return reply(204, undefined)
  })
}
