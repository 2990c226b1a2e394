import type { GrepResult } from '../../../../contract/files.ts'

/** Lines that were found, by path and line. `isTruncated`: there are more. */
export type Found = { results: GrepResult[]; isTruncated: boolean }
