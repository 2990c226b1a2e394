import { MAX_PATH_BYTES, MAX_SEGMENTS } from '../../../../contract/kit/file-paths.ts'

const MIB = 1024 * 1024

export const MAX_ENTRIES = 100
/**
 * Maximum number of a skill's files and directories, including implied directories but not the root: rows of the
 * database.
 */
export const MAX_ROWS = 200
export const MAX_ENTRY_BYTES = MIB
export const MAX_UNPACKED_BYTES = 10 * MIB
/** Maximum number of entries of an archive, including ignored ones. */
export const MAX_LISTED = 1000

/** Directory of a skill in a session, with the longest possible name of a skill. */
const LONGEST_DIRECTORY = `/skills/${'x'.repeat(64)}/`
export const MAX_ENTRY_PATH_BYTES = MAX_PATH_BYTES - LONGEST_DIRECTORY.length
export const MAX_ENTRY_SEGMENTS = MAX_SEGMENTS - 2
