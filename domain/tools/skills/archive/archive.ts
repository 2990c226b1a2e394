/** File of an archive. `path` is relative, in the skill. */
export type ArchivedFile = { path: string; bytes: Uint8Array<ArrayBuffer>; isBase64: boolean }

/**
 * Answer of the unpacking thread: each file, and at the end the directories, or a problem in a sentence that names the
 * entry.
 */
export type ArchiveAnswer = { file: ArchivedFile } | { directories: string[] } | { problem: string }

export const SKILL_MD = 'SKILL.md'
