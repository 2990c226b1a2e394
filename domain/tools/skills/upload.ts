import type { SkillId } from '../../../contract/kit/ids.ts'
import type { Skill } from '../../../contract/skills.ts'
import type { Skill as SkillRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { createOnce } from '../../kit/create-once.ts'
import { DomainError, tooMany } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import type { Deps } from '../deps.ts'
import type { ArchiveAnswer } from './archive/archive.ts'
import { directory, type NewFile, replaceFiles, SKILL_MD_PATH } from './files.ts'
import { insertSkill, type ValidFields } from './insert.ts'
import { presentSkill } from './present.ts'
import { requireSkill } from './read.ts'
import { readSkillMd, requireValid } from './skill-md.ts'
import { changeSkill } from './update.ts'

type Once = <T>(create: (attempt: CreationAttempt) => Promise<T>) => Promise<T>

/** CPU time limit of an archive. The largest ones take a tenth of a second. */
const TIME_LIMIT_MS = 3000
const BUSY_SECONDS = 5

/**
 * Creates a skill from a ZIP archive, which is read whole before `once`, which needs its digest. Throws `unprocessable`
 * with the archive's problem or all problems of its SKILL.md, `conflict` for a taken name and at the quota, and
 * `too_many`.
 */
export async function uploadSkill(
  deps: Deps,
  actor: Actor,
  chunks: AsyncIterable<Uint8Array>,
  once: Once,
): Promise<Skill> {
  const { organizationId } = actor
  const archive = await readWhole(chunks)
  return once(async (attempt) => {
    const row = await createOnce(attempt, {
      find: (id) => deps.db.skill.findFirst({ where: { id, organizationId } }),
      insert: (id) => withSlot(deps, actor, () => insertUnpacked(deps, actor, id, archive)),
    })
    return presentSkill(row)
  })
}

/**
 * Replaces the text and the files of a skill with the contents of a ZIP archive. Throws `not_found`, and the errors of
 * uploadSkill except the quota's.
 */
export async function replaceSkillContent(
  deps: Deps,
  actor: Actor,
  id: SkillId,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Skill> {
  await requireSkill(deps, actor, id)
  const archive = await readWhole(chunks)
  const { files, fields } = await withSlot(deps, actor, () => readArchive(deps, actor, archive))
  return changeSkill(deps, actor, id, { fields, source: 'archive' }, (tx) => replaceFiles(tx, id, files))
}

async function readWhole(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

/**
 * Runs the work when its turn comes, so that few archives are unpacked in memory, even if its client disconnects.
 * Throws `too_many`.
 */
async function withSlot<T>(deps: Deps, { organizationId }: Actor, work: () => Promise<T>): Promise<T> {
  const claim = { owner: await deps.owners.ownerOf(organizationId) }
  return deps.archiveSlots.run(claim, work, () => {
    throw busy()
  })
}

const busy = () => tooMany('Too many archives are being unpacked; try again', BUSY_SECONDS)

const insertUnpacked = async (
  deps: Deps,
  actor: Actor,
  id: string,
  archive: Uint8Array,
): Promise<SkillRow | undefined> =>
  insertSkill(deps, actor, { id, source: 'archive', ...(await readArchive(deps, actor, archive)) })

async function readArchive(
  deps: Deps,
  actor: Actor,
  archive: Uint8Array,
): Promise<{ files: NewFile[]; fields: ValidFields }> {
  const files = await unpack(deps, actor, archive)
  const owner = await deps.owners.ownerOf(actor.organizationId)
  const fields = requireValid(await readSkillMd(deps.threads.documents, textOf(files), owner))
  return { files, fields }
}

async function unpack(deps: Deps, { organizationId }: Actor, archive: Uint8Array): Promise<NewFile[]> {
  const claim = { owner: await deps.owners.ownerOf(organizationId) }
  const { answers, end } = await deps.threads.archives.run(archive, TIME_LIMIT_MS, undefined, claim)
  if (end === 'busy') throw busy()
  if (end !== 'done') throw refused('takes too much time or memory to unpack')
  return [directory(''), ...answers.flatMap(filesOf)]
}

function filesOf(answer: ArchiveAnswer): NewFile[] {
  if ('problem' in answer) throw refused(answer.problem)
  if ('directories' in answer) return answer.directories.map((path) => directory(`/${path}`))
  const { path, bytes, isBase64 } = answer.file
  return [{ path: `/${path}`, isDirectory: false, isBase64, bytes }]
}

function textOf(files: NewFile[]): string {
  const skillMd = files.find(({ path }) => path === SKILL_MD_PATH)
  if (skillMd === undefined || skillMd.isBase64) throw refused('SKILL.md must be text in UTF-8, without NUL')
  // A byte order mark is kept.
  return Buffer.from(skillMd.bytes).toString()
}

const refused = (problem: string) => new DomainError('unprocessable', `file: ${problem}`)
