import type { SessionScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { bodyOf } from './body.ts'
import type { SessionSkills } from './session-skills.ts'

/** Maximum number of listed files of a skill, enough for an uploaded one. Their paths have at most 1 KiB. */
const MAX_FILES = 100

/** Opens a session's skills for a tool call. */
export const openSessionSkills = (deps: Deps, { organizationId, sessionId }: SessionScope): SessionSkills => ({
  list: () => deps.db.$queryRaw`
    SELECT name, description, '/skills/' || name AS path
    FROM active_session_skills(${organizationId}::uuid, ${sessionId}::uuid) ORDER BY name COLLATE "C"`,
  read: async (name) => {
    const [row] = await deps.db.$queryRaw<Row[]>`
      SELECT k.name, k.description, '/skills/' || k.name AS path, m.bytes,
        ARRAY(SELECT '/skills/' || k.name || f.path FROM skill_files f
          WHERE f.skill_id = k.id AND NOT f.is_directory AND f.path <> m.path
          ORDER BY f.path COLLATE "C" LIMIT ${MAX_FILES + 1}) AS files
      FROM active_session_skills(${organizationId}::uuid, ${sessionId}::uuid) k
      JOIN skill_files m ON m.skill_id = k.id AND m.path = '/SKILL.md'
      WHERE k.name = ${name}`
    if (row === undefined) return undefined
    const { bytes, files, ...skill } = row
    const body = bodyOf(Buffer.from(bytes).toString())
    return { ...skill, body, files: files.slice(0, MAX_FILES), hasMoreFiles: files.length > MAX_FILES }
  },
})

type Row = { name: string; description: string; path: string; bytes: Uint8Array; files: string[] }
