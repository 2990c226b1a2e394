import type { Prisma } from '../../../prisma/generated/client.ts'
import { newUuid } from '../../kit/ids.ts'

/** File or directory of a skill to store. `path` is '' for its root, and begins with a slash otherwise. */
export type NewFile = { path: string; isDirectory: boolean; isBase64: boolean; bytes: Uint8Array<ArrayBuffer> }

export const SKILL_MD_PATH = '/SKILL.md'
/** Maximum bytes of files that one statement inserts. A single file may have as many. */
const BYTES_AT_ONCE = 1024 * 1024
const ROWS_AT_ONCE = 100

export const directory = (path: string): NewFile => ({
  path,
  isDirectory: true,
  isBase64: false,
  bytes: new Uint8Array(),
})

/** Returns the files of a skill with only a SKILL.md. */
export const filesOfText = (skillMd: string): NewFile[] => [directory(''), skillMdFile(skillMd)]

const skillMdFile = (text: string): NewFile => ({
  path: SKILL_MD_PATH,
  isDirectory: false,
  isBase64: false,
  bytes: new TextEncoder().encode(text),
})

/** Inserts the files of a skill, in statements of bounded size. */
export async function insertFiles(tx: Prisma.TransactionClient, skillId: string, files: NewFile[]): Promise<void> {
  for (const batch of inBatches(files)) {
    const data = batch.map((file) => ({ id: newUuid(), skillId, sizeBytes: file.bytes.length, ...file }))
    await tx.skillFile.createMany({ data })
  }
}

/** Replaces the text of SKILL.md. Its file gets a new id with the new content. */
export async function replaceSkillMd(tx: Prisma.TransactionClient, skillId: string, text: string): Promise<void> {
  await tx.skillFile.deleteMany({ where: { skillId, path: SKILL_MD_PATH } })
  await insertFiles(tx, skillId, [skillMdFile(text)])
}

/** Replaces all files of a skill. */
export async function replaceFiles(tx: Prisma.TransactionClient, skillId: string, files: NewFile[]): Promise<void> {
  await tx.skillFile.deleteMany({ where: { skillId } })
  await insertFiles(tx, skillId, files)
}

function* inBatches(files: NewFile[]): Generator<NewFile[]> {
  let batch: NewFile[] = []
  let bytes = 0
  for (const file of files) {
    const isFull = batch.length === ROWS_AT_ONCE || bytes + file.bytes.length > BYTES_AT_ONCE
    if (batch.length > 0 && isFull) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(file)
    bytes += file.bytes.length
  }
  if (batch.length > 0) yield batch
}
