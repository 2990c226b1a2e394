import { SKILL_MD } from './archive.ts'
import { MAX_ENTRIES, MAX_ENTRY_PATH_BYTES, MAX_ENTRY_SEGMENTS, MAX_ROWS } from './limits.ts'
import { ArchiveProblem, problemOf } from './problem.ts'

/** Name of an entry, and whether it is a directory. */
export type ListedEntry = { name: string; isDirectory: boolean }

/** Whether an entry was added by the macOS Finder, unknown to its user. */
export const isLeftOut = (name: string): boolean => /^__MACOSX(\/|$)|(^|\/)\.DS_Store$/.test(name)

/** Throws ArchiveProblem unless a name is a path within the archive. */
export function checkName(name: string): void {
  // Too long even without the common folder of all entries.
  if (name.length > 2 * MAX_ENTRY_PATH_BYTES) throw tooLong(name)
  const segments = name.replace(/\/$/, '').split('/')
  if (name.includes('\ufffd')) throw problemOf(name, 'has a name that is not UTF-8')
  if (/\p{Cc}/u.test(name)) throw problemOf(name, 'has a control character in its name')
  if (name.includes('\\')) throw problemOf(name, 'has a backslash in its name')
  if (name.startsWith('/') || /^[a-z]:/i.test(name)) throw problemOf(name, 'is an absolute path')
  if (segments.includes('')) throw problemOf(name, 'has an empty part in its path')
  if (segments.includes('.') || segments.includes('..')) throw problemOf(name, 'has a . or .. in its path')
}

/**
 * Returns the path of each entry in the skill, in the same order: without the common folder of all entries, which
 * itself is ''. Throws ArchiveProblem for duplicates, for a file that is also a directory, for long paths, for too many
 * directories, and if SKILL.md is missing.
 */
export function placeEntries(entries: readonly ListedEntry[]): string[] {
  if (entries.length > MAX_ENTRIES) throw new ArchiveProblem(`must have at most ${MAX_ENTRIES} entries`)
  const names = entries.map(({ name }) => name.replace(/\/$/, ''))
  const folder = commonFolder(entries)
  const paths = folder === undefined ? names : names.map((name) => name.slice(folder.length + 1))
  checkTwice(entries, names)
  for (const [index, path] of paths.entries()) checkSize(names[index] ?? '', path)
  checkSkillMd(entries, paths)
  checkRows(entries, paths)
  return paths
}

/** Returns all directories of the paths, without the root. */
export function directoriesOf(entries: readonly { path: string; isDirectory: boolean }[]): string[] {
  const directories = entries.flatMap(({ path, isDirectory }) => [...(isDirectory ? [path] : []), ...parentsOf(path)])
  return [...new Set(directories)].filter((path) => path !== '')
}

const parentsOf = (path: string): string[] =>
  [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index)).filter((parent) => parent !== '')

function commonFolder(entries: readonly ListedEntry[]): string | undefined {
  const folder = entries[0]?.name.split('/')[0]
  const isIn = ({ name, isDirectory }: ListedEntry) =>
    name.startsWith(`${folder}/`) || (isDirectory && name.replace(/\/$/, '') === folder)
  return folder !== undefined && entries.every(isIn) ? folder : undefined
}

function checkTwice(entries: readonly ListedEntry[], names: readonly string[]): void {
  const seen = new Set<string>()
  for (const name of names) {
    if (seen.has(name)) throw problemOf(name, 'is there twice')
    seen.add(name)
  }
  const directories = new Set(names.flatMap(parentsOf))
  const both = names.find((name, index) => !entries[index]?.isDirectory && directories.has(name))
  if (both !== undefined) throw problemOf(both, 'is a file and a directory')
}

function checkSize(name: string, path: string): void {
  if (Buffer.byteLength(path) > MAX_ENTRY_PATH_BYTES) throw tooLong(name)
  if (path.split('/').length > MAX_ENTRY_SEGMENTS) {
    throw problemOf(name, `has a path of more than ${MAX_ENTRY_SEGMENTS} parts`)
  }
}

function checkSkillMd(entries: readonly ListedEntry[], paths: readonly string[]): void {
  const found = paths.filter((path) => path.toLowerCase() === SKILL_MD.toLowerCase())
  const [first, second] = found
  if (first !== undefined && second !== undefined) throw problemOf(second, `is there beside ${first}`)
  if (first !== undefined && first !== SKILL_MD) throw problemOf(first, `must be named ${SKILL_MD}`)
  if (first === undefined || entries[paths.indexOf(SKILL_MD)]?.isDirectory) {
    throw new ArchiveProblem(`must have a file ${SKILL_MD}, at the top or in the one folder that all entries are in`)
  }
}

function checkRows(entries: readonly ListedEntry[], paths: readonly string[]): void {
  const placed = entries.map(({ isDirectory }, index) => ({ isDirectory, path: paths[index] ?? '' }))
  const files = placed.filter(({ isDirectory }) => !isDirectory)
  if (files.length + directoriesOf(placed).length > MAX_ROWS) {
    throw new ArchiveProblem(`must have at most ${MAX_ROWS} files and directories, including the directories in paths`)
  }
}

const tooLong = (name: string) => problemOf(name, `has a path of more than ${MAX_ENTRY_PATH_BYTES} bytes of UTF-8`)
