import { isText } from '../../../session-data/files/content.ts'
import type { FileChange } from '../../../session-data/files/file-change.ts'
import type { TreeEntry } from '../../../session-data/files/session-files.ts'

/** Content and path of a session's file at the start. */
export type Origin = { path: string; contentId: string }
export type FileNode = {
  isDirectory: false
  /** Absent for a file created by the command. */
  origin: Origin | undefined
  isReadonly: boolean
  sizeBytes: number
  /** Absent until needed. */
  bytes: Uint8Array | undefined
  isWritten: boolean
  mtime: Date
}
/** `isReadonly`: nothing in it may be created, removed or renamed, nor may the directory itself. */
export type DirectoryNode = { isDirectory: true; isReadonly: boolean; children: Map<string, TreeNode>; mtime: Date }
export type TreeNode = FileNode | DirectoryNode

/** Maximum number of files and directories that one command may write, create, move and delete: a session's maximum. */
const MAX_CHANGES = 20_000
const MAX_SHOWN_PATH = 200

/** Failure in the form of programs: its code, the reason, and the path. */
export class FileSystemError extends Error {
  readonly code: string
  constructor(code: string, reason: string, path: string) {
    super(`${code}: ${reason}, '${path.slice(0, MAX_SHOWN_PATH).toWellFormed()}'`)
    this.code = code
  }
}

const directory = (mtime = new Date(), isReadonly = false): DirectoryNode => ({
  ...{ isDirectory: true, isReadonly, children: new Map(), mtime },
})
const readOnly = (path: string) => new FileSystemError('EACCES', 'the files of a skill are read-only', path)
const missing = (path: string) => new FileSystemError('ENOENT', 'no such file or directory', path)

/**
 * Files and directories of a command, and their history. Changes of names are recorded in order; contents are looked up
 * at the end.
 */
export class FileTree {
  readonly root = directory()
  private readonly renamings: FileChange[] = []
  private readonly problemOf: (path: string) => string | undefined
  private made = 0

  /** `problemOf` returns the problem of a path to write. */
  constructor(entries: TreeEntry[], problemOf: (path: string) => string | undefined) {
    this.problemOf = problemOf
    for (const entry of entries) {
      const mtime = new Date(entry.updated_at)
      const [parent, name] = this.place(entry.path)
      parent.children.set(name, entry.is_directory ? directory(mtime, entry.is_readonly) : toFile(entry, mtime))
    }
  }

  find(path: string): TreeNode | undefined {
    let node: TreeNode | undefined = this.root
    for (const name of path.split('/').filter(Boolean)) node = node?.isDirectory ? node.children.get(name) : undefined
    return node
  }

  require(path: string): TreeNode {
    const node = this.find(path)
    if (node === undefined) throw missing(path)
    return node
  }

  makeDirectory(path: string): void {
    const [parent, name] = this.newPlace(path)
    this.rename({ do: 'make_directory', path })
    parent.children.set(name, directory())
  }

  makeFile(path: string): FileNode {
    const [parent, name] = this.newPlace(path)
    this.count()
    const fields = { origin: undefined, isReadonly: false, sizeBytes: 0, bytes: new Uint8Array() }
    const file: FileNode = { isDirectory: false, ...fields, isWritten: true, mtime: new Date() }
    parent.children.set(name, file)
    return file
  }

  /** Fails if something to remove belongs to a skill. */
  checkRemovable(path: string): void {
    const [parent] = this.place(path)
    checkRemovable(parent, this.require(path), path)
  }

  /** Removes a file or an empty directory. */
  remove(path: string): void {
    const node = this.require(path)
    const [parent, name] = this.place(path)
    checkRemovable(parent, node, path)
    if (node.isDirectory) this.rename({ do: 'delete', path, was: null })
    else if (node.origin !== undefined) this.rename({ do: 'delete', path, was: node.origin.contentId })
    parent.children.delete(name)
  }

  /** Fails if the move is not allowed, whether or not the name is free. */
  checkMove(from: string, to: string): void {
    this.checkNames(this.require(from), to)
    if (this.place(to)[0].isReadonly) throw readOnly(to)
    this.checkRemovable(from)
  }

  /** Moves a file or directory to a free name. */
  move(from: string, to: string): void {
    this.checkMove(from, to)
    const node = this.require(from)
    const [target, name] = this.newPlace(to)
    const [source, oldName] = this.place(from)
    if (node.isDirectory || node.origin !== undefined) this.rename({ do: 'move', from, to })
    source.children.delete(oldName)
    target.children.set(name, node)
  }

  /** Counts a change. Fails beyond the limit each time, because commands ignore errors. */
  count(): void {
    this.made++
    this.checkCount()
  }

  /** Returns the changes to the session, in order. Throws beyond the limit. */
  changes(): FileChange[] {
    this.checkCount()
    const writes = [...filesBelow(this.root, '')].filter(([, file]) => file.isWritten)
    return [...this.renamings, ...writes.map(([path, file]) => toWrite(path, file))]
  }

  private place(path: string): [parent: DirectoryNode, name: string] {
    const end = path.lastIndexOf('/')
    const parent = this.find(path.slice(0, end))
    if (parent === undefined) throw missing(path)
    if (!parent.isDirectory) throw new FileSystemError('ENOTDIR', 'not a directory', path)
    return [parent, path.slice(end + 1)]
  }

  private newPlace(path: string): [parent: DirectoryNode, name: string] {
    this.checkName(path)
    const place = this.place(path)
    if (place[0].isReadonly) throw readOnly(path)
    if (place[0].children.has(place[1])) throw new FileSystemError('EEXIST', 'file already exists', path)
    return place
  }

  private rename(change: FileChange): void {
    this.count()
    this.renamings.push(change)
  }

  private checkCount(): void {
    if (this.made > MAX_CHANGES) {
      throw new FileSystemError('ENOSPC', `one command may change at most ${MAX_CHANGES} files and directories`, '/')
    }
  }

  private checkName(path: string): void {
    const problem = path.isWellFormed() ? this.problemOf(path) : 'must be text'
    if (problem === undefined) return
    throw new FileSystemError(problem.includes('at most') ? 'ENAMETOOLONG' : 'EINVAL', `the path ${problem}`, path)
  }

  /** Checks the names that a node and everything in it would have. */
  private checkNames(node: TreeNode, path: string): void {
    this.checkName(path)
    if (node.isDirectory) for (const [name, child] of node.children) this.checkNames(child, `${path}/${name}`)
  }
}

function checkRemovable(parent: DirectoryNode, node: TreeNode, path: string): void {
  if (parent.isReadonly || holdsReadonly(node)) throw readOnly(path)
}

const holdsReadonly = (node: TreeNode): boolean =>
  node.isDirectory && (node.isReadonly || [...node.children.values()].some(holdsReadonly))

const toFile = ({ path, content_id, is_readonly, size_bytes }: TreeEntry, mtime: Date): FileNode => ({
  isDirectory: false,
  origin: { path, contentId: content_id ?? '' },
  isReadonly: is_readonly,
  sizeBytes: size_bytes,
  bytes: undefined,
  isWritten: false,
  mtime,
})

const toWrite = (path: string, { origin, bytes = new Uint8Array() }: FileNode): FileChange => ({
  do: 'write',
  path,
  bytes,
  isBase64: !isText(bytes),
  was: origin?.contentId ?? null,
})

function* filesBelow(node: DirectoryNode, path: string): Generator<[path: string, file: FileNode]> {
  for (const [name, child] of node.children) {
    if (child.isDirectory) yield* filesBelow(child, `${path}/${name}`)
    else yield [`${path}/${name}`, child]
  }
}
