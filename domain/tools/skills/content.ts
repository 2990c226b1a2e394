import type { SkillId } from '../../../contract/kit/ids.ts'
import type { SkillFileEntry } from '../../../contract/skills.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { SKILL_MD_PATH } from './files.ts'

/** Content of a skill: the text of its SKILL.md, and its other files, read on demand. */
export type OpenedSkill = { skillMd: string; files: Pages<SkillFileEntry> }

type FileRow = { path: string; isBase64: boolean; bytes: Uint8Array }

/** Files per page. Each has at most 1 MiB. */
const FILES_AT_ONCE = 100
/** Bytes of a page, without its last file. */
const PAGE_BYTES = 256 * 1024

/** Opens the content of a skill. Throws `not_found`. */
export async function openSkillContent(deps: Deps, { organizationId }: Actor, id: SkillId): Promise<OpenedSkill> {
  const file = await deps.db.skillFile.findFirst({
    where: { skill: { id, organizationId }, path: SKILL_MD_PATH },
    select: { bytes: true },
  })
  if (file === null) throw notFound('Skill')
  return { skillMd: textOf(file.bytes), files: readFiles(deps, organizationId, id) }
}

const readFiles = (deps: Deps, organizationId: string, skillId: string): Pages<SkillFileEntry> =>
  pages({
    atOnce: FILES_AT_ONCE,
    read: async ({ after, take }: PageStart<FileRow>) => {
      const rows = await deps.db.$queryRaw<FileRow[]>`
        SELECT path, is_base64 AS "isBase64", bytes FROM (
          SELECT f.*, sum(f.size_bytes) OVER (ORDER BY f.path ROWS UNBOUNDED PRECEDING) AS up_to
          FROM skills k JOIN skill_files f ON f.skill_id = k.id
          WHERE k.id = ${skillId}::uuid AND k.organization_id = ${organizationId}::uuid
            AND NOT f.is_directory AND f.path <> ${SKILL_MD_PATH} AND f.path > ${after?.path ?? ''}
        ) AS rest
        WHERE up_to - size_bytes < ${PAGE_BYTES} ORDER BY path LIMIT ${take}`
      return { rows, hasMore: rows.length > 0 }
    },
    present: (rows) => rows.map(presentFile),
  })

const presentFile = ({ path, isBase64, bytes }: FileRow): SkillFileEntry =>
  isBase64
    ? { path: path.slice(1), content: Buffer.from(bytes).toString('base64'), encoding: 'base64' }
    : { path: path.slice(1), content: textOf(bytes) }

/** Decodes text with its byte order mark. */
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
