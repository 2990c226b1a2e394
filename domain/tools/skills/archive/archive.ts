/** File of an archive. `path` is relative, in the skill. */
export type ArchivedFile = { path: string; bytes: Uint8Array<ArrayBuffer>; isBase64: boolean }

/**
 * Answer of the thread that unpacks an archive: each file, and at the end the directories. Or a problem, a sentence that
 * names the entry.
 */
export type ArchiveAnswer = { file: ArchivedFile } | { directories: string[] } | { problem: string }

export const SKILL_MD = 'SKILL.md'
