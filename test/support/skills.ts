import { randomUUID } from 'node:crypto'
import type { Organization } from './shared/service.ts'

/** Organization whose database is at hand. */
type Owner = Pick<Organization, 'uuid' | 'query'>

/** Contents of a skill's files by their path in it, such as /SKILL.md. */
export type SkillContents = Record<string, string | Buffer>

/** Stores an active skill as an upload does, with the directories of its files. Returns its id, a UUID. */
export async function addSkill(api: Owner, name: string, contents: SkillContents): Promise<string> {
  const id = randomUUID()
  await api.query(
    `INSERT INTO skills (id, organization_id, name, description, version, source, updated_at)
    VALUES ($1, $2, $3, $4, '1.0', 'archive', now())`,
    [id, api.uuid, name, `For ${name}.`],
  )
  const directories = [...new Set(Object.keys(contents).flatMap(directoriesOf))]
  await api.query(
    `INSERT INTO skill_files (id, skill_id, path, is_directory)
    SELECT gen_random_uuid(), $1, path, true FROM unnest($2::text[]) AS path`,
    [id, directories],
  )
  await api.query(
    `INSERT INTO skill_files (id, skill_id, path, is_directory, is_base64, size_bytes, bytes)
    SELECT gen_random_uuid(), $1, path, false, is_base64, length(bytes), bytes
    FROM unnest($2::text[], $3::boolean[], $4::bytea[]) AS file (path, is_base64, bytes)`,
    [id, Object.keys(contents), Object.values(contents).map(Buffer.isBuffer), Object.values(contents).map(toBytes)],
  )
  return id
}

const toBytes = (content: string | Buffer): Buffer => Buffer.from(content)

/** Stores a file of a skill, in the place of the one with this path. */
export async function addSkillFile(api: Owner, id: string, path: string, content: string | Buffer) {
  await api.query('DELETE FROM skill_files WHERE skill_id = $1 AND path = $2', [id, path])
  const bytes = Buffer.from(content)
  await api.query(
    `INSERT INTO skill_files (id, skill_id, path, is_directory, is_base64, size_bytes, bytes)
    VALUES ($1, $2, $3, false, $4, $5, $6)`,
    [randomUUID(), id, path, Buffer.isBuffer(content), bytes.length, bytes],
  )
}

/** Returns the directories above a path, with the root, ''. */
const directoriesOf = (path: string): string[] =>
  path.split('/').flatMap((_, index, segments) => (index === 0 ? [] : [segments.slice(0, index).join('/')]))
