import type { GrepResult } from '../../../../contract/files.ts'

/** Matches that may still be returned, and their bytes as JSON. */
export type Room = { matches: number; bytes: number }

/** Patterns of a request; without `pathPattern` all paths match. */
export type Patterns = { pattern: string; pathPattern: string | undefined }
/** `choose` checks the patterns and chooses paths, `scan` finds lines in files. */
export type GrepJob =
  | { do: 'choose'; patterns: Patterns; paths: string[] }
  | { do: 'scan'; pattern: string; files: { path: string; bytes: Uint8Array }[]; room: Room }
/** `isFull`: there is a match that had no room, and the search has ended with it. */
export type GrepAnswer =
  | { is: 'problem'; problem: string }
  | { is: 'chosen'; paths: string[] }
  | { is: 'scanned'; results: GrepResult[]; room: Room; isFull: boolean }
