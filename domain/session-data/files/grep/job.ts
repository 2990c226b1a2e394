import type { GrepResult } from '../../../../contract/files.ts'

/** Number of matches that may still be returned, and their bytes as JSON. */
export type Room = { matches: number; bytes: number }

/** Patterns of a request; without `pathPattern` all paths match. */
export type Patterns = { pattern: string; pathPattern: string | undefined }
/** `choose` checks the patterns and chooses paths, `scan` finds lines in files. */
export type GrepJob =
  | { do: 'choose'; patterns: Patterns; paths: string[] }
  | { do: 'scan'; pattern: string; files: { path: string; bytes: Uint8Array }[]; room: Room }
/** `isFull`: a match had no room, which ended the search. */
export type GrepAnswer =
  | { is: 'problem'; problem: string }
  | { is: 'chosen'; paths: string[] }
  | { is: 'scanned'; results: GrepResult[]; room: Room; isFull: boolean }
