import { MAX_PATH_BYTES, MAX_SEGMENTS } from '../../../../contract/kit/file-paths.ts'

const MIB = 1024 * 1024

export const MAX_ENTRIES = 100
/** Files and directories of a skill, with the directories that paths imply and without its root: rows of the database. */
export const MAX_ROWS = 200
export const MAX_ENTRY_BYTES = MIB
export const MAX_UNPACKED_BYTES = 10 * MIB
/** Limit on the entries of an archive, including ignored ones. */
export const MAX_LISTED = 1000

/** Directory of a skill in a session, with the longest name that a skill may be given later. */
const LONGEST_DIRECTORY = `/skills/${'x'.repeat(64)}/`
export const MAX_ENTRY_PATH_BYTES = MAX_PATH_BYTES - LONGEST_DIRECTORY.length
export const MAX_ENTRY_SEGMENTS = MAX_SEGMENTS - 2
