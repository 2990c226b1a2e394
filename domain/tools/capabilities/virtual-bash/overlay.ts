import {
  type BufferEncoding,
  type ByteString,
  type CpOptions,
  type FileContent,
  type FsStat,
  type IFileSystem,
  type MkdirOptions,
  type RmOptions,
  unsafeBytesFromLatin1,
} from 'just-bash'
import type { FileChange } from '../../../session-data/files/file-change.ts'
import type { TreeEntry } from '../../../session-data/files/session-files.ts'
import {
  type DirectoryNode,
  type FileNode,
  FileSystemError,
  FileTree,
  type Origin,
  type TreeNode,
} from './file-tree.ts'

export type OverlayOptions = {
  entries: TreeEntry[]
  /** Reads the content of a session's file. */
  fetch(origin: Origin): Promise<Uint8Array>
  maxFileBytes: number
  /** Maximum bytes of written contents, and of cached contents that were only read. */
  maxBytes: number
  /** Returns the problem of a path to write. */
  problemOf(path: string): string | undefined
}

const DIRECTORY_MODE = 0o755
/** Every file is executable: the session stores no modes, and `chmod +x` must work. */
const FILE_MODE = 0o755
const WRITE_PROTECTED_MODE = 0o555
/** Maximum number of failures of one copy that are named. */
const MAX_FAILURES_SHOWN = 20

/** File system of a command: the session's files, with the command's changes in memory on top. */
export class Overlay implements IFileSystem {
  private readonly tree: FileTree
  private readonly options: OverlayOptions
  /** Files whose contents were only read, and can be read again. */
  private readonly kept = new Set<FileNode>()
  private keptBytes = 0
  /** Files of the session whose contents the command knows. */
  private readonly known = new Set<FileNode>()
  private writtenBytes = 0

  constructor(options: OverlayOptions) {
    this.options = options
    this.tree = new FileTree(options.entries, options.problemOf)
  }

  /** Returns the changes, after checks that prevent all of them if a file that was read has changed since. */
  changes(): FileChange[] {
    const changes = this.tree.changes()
    if (sizeOf(changes) > this.options.maxBytes)
      throw new Error(`more than ${this.options.maxBytes} bytes were written`)
    return changes.length === 0 ? [] : [...[...this.known].flatMap(toCheck), ...changes]
  }

  async readFileBuffer(path: string): Promise<Uint8Array> {
    return this.load(this.requireFile(path))
  }

  async readFileBytes(path: string): Promise<ByteString> {
    return unsafeBytesFromLatin1(asBuffer(await this.readFileBuffer(path)).toString('latin1'))
  }

  async readFile(path: string, options?: { encoding?: BufferEncoding | null } | BufferEncoding): Promise<string> {
    const bytes = await this.readFileBuffer(path)
    const encoding = encodingOf(options)
    if (encoding === undefined || /^utf-?8$/.test(encoding)) return new TextDecoder().decode(bytes)
    return asBuffer(bytes).toString(encoding)
  }

  async writeFile(path: string, content: FileContent, options?: Parameters<IFileSystem['writeFile']>[2]) {
    this.write(await this.writableFile(path), toBytes(content, options), path)
  }

  async appendFile(path: string, content: FileContent, options?: Parameters<IFileSystem['writeFile']>[2]) {
    const file = await this.writableFile(path)
    const more = toBytes(content, options)
    if (more.length > 0) this.write(file, Buffer.concat([await this.load(file), more]), path)
  }

  async exists(path: string): Promise<boolean> {
    return this.tree.find(path) !== undefined
  }

  async stat(path: string): Promise<FsStat> {
    return toStat(this.tree.require(path))
  }

  lstat = this.stat

  async mkdir(path: string, options?: MkdirOptions): Promise<void> {
    const found = this.tree.find(path)
    if (found?.isDirectory && options?.recursive) return
    const parent = parentOf(path)
    if (options?.recursive && parent !== '') await this.mkdir(parent, options)
    this.tree.makeDirectory(path)
  }

  async readdir(path: string): Promise<string[]> {
    return (await this.readdirWithFileTypes(path)).map(({ name }) => name)
  }

  async readdirWithFileTypes(path: string) {
    const node = this.tree.require(path)
    if (!node.isDirectory) throw new FileSystemError('ENOTDIR', 'not a directory', path)
    return [...node.children]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, { isDirectory }]) => ({ name, isFile: !isDirectory, isDirectory, isSymbolicLink: false }))
  }

  async rm(path: string, options?: RmOptions): Promise<void> {
    const node = this.tree.find(path)
    if (node === undefined && options?.force) return
    if (node === this.tree.root) throw new FileSystemError('EPERM', 'operation not permitted', path)
    this.tree.checkRemovable(path)
    if (node?.isDirectory && node.children.size > 0) {
      if (!options?.recursive) throw new FileSystemError('ENOTEMPTY', 'directory not empty', path)
      for (const name of [...node.children.keys()]) await this.rm(join(path, name), options)
    }
    this.tree.remove(path)
    if (node?.isDirectory === false) this.release(node)
  }

  async cp(from: string, to: string, options?: CpOptions): Promise<void> {
    const node = this.tree.require(from)
    if (!node.isDirectory) return this.writeFile(to, await this.load(node))
    if (!options?.recursive) throw new FileSystemError('EISDIR', 'is a directory', from)
    if (isWithin(to, from)) throw new FileSystemError('EINVAL', 'cannot copy a directory into itself', to)
    const failures = await this.copyDirectory(node, from, to)
    if (failures.length > 0) throw new Error(sentenceOf(failures))
  }

  /** Copies what it can, and returns the reasons for the rest, such as a skill's name that is invalid in a session. */
  private async copyDirectory(node: DirectoryNode, from: string, to: string): Promise<FileSystemError[]> {
    const failures: FileSystemError[] = []
    await this.mkdir(to, { recursive: true })
    for (const [name, child] of [...node.children]) {
      const [source, target] = [join(from, name), join(to, name)]
      try {
        if (child.isDirectory) failures.push(...(await this.copyDirectory(child, source, target)))
        else await this.cp(source, target)
      } catch (error) {
        // Without space, every further copy would fail.
        if (!(error instanceof FileSystemError) || error.code === 'ENOSPC') throw error
        failures.push(error)
      }
    }
    return failures
  }

  async mv(from: string, to: string): Promise<void> {
    if (from === to) return
    const node = this.tree.require(from)
    if (node.isDirectory && isWithin(to, from)) {
      throw new FileSystemError('EINVAL', 'cannot move a directory into itself', to)
    }
    const replaced = this.tree.find(to)
    if (replaced === undefined) return this.tree.move(from, to)
    checkReplaced(node, replaced, to)
    // A new file over a session's file becomes its new content, so that the file keeps its identity.
    if (!node.isDirectory && !replaced.isDirectory && node.origin === undefined) {
      this.write(replaced, await this.load(node), to)
      return this.rm(from)
    }
    this.tree.checkMove(from, to)
    await this.rm(to)
    this.tree.move(from, to)
  }

  resolvePath(base: string, path: string): string {
    const segments: string[] = []
    for (const segment of (path.startsWith('/') ? path : `${base}/${path}`).split('/')) {
      if (segment === '..') segments.pop()
      else if (segment !== '' && segment !== '.') segments.push(segment)
    }
    return `/${segments.join('/')}`
  }

  /** Unused: paths are found by reading directories. */
  getAllPaths(): string[] {
    return []
  }

  async realpath(path: string): Promise<string> {
    this.tree.require(path)
    return path
  }

  /** Does nothing: the session stores no modes. */
  async chmod(path: string): Promise<void> {
    this.tree.require(path)
  }

  /** Does nothing: the session sets its times itself. */
  async utimes(path: string): Promise<void> {
    this.tree.require(path)
  }

  async readlink(path: string): Promise<string> {
    this.tree.require(path)
    throw new FileSystemError('EINVAL', 'not a symbolic link', path)
  }

  async symlink(_target: string, path: string): Promise<void> {
    throw new FileSystemError('EPERM', 'the files of a session cannot be links', path)
  }

  async link(_existing: string, path: string): Promise<void> {
    throw new FileSystemError('EPERM', 'the files of a session cannot be links', path)
  }

  private requireFile(path: string): FileNode {
    const node = this.tree.require(path)
    if (node.isDirectory) throw new FileSystemError('EISDIR', 'is a directory', path)
    return node
  }

  /** Finds or creates a file, and creates its parent directories as the session does. */
  private async writableFile(path: string): Promise<FileNode> {
    if (this.tree.find(path) === undefined) {
      await this.mkdir(parentOf(path), { recursive: true })
      return this.tree.makeFile(path)
    }
    const file = this.requireFile(path)
    if (file.isReadonly) throw new FileSystemError('EACCES', 'the file is read-only', path)
    return file
  }

  private async load(file: FileNode): Promise<Uint8Array> {
    const { bytes, origin, sizeBytes } = file
    if (bytes !== undefined) return bytes
    if (origin === undefined) return new Uint8Array()
    this.known.add(file)
    if (sizeBytes === 0) return new Uint8Array()
    this.makeRoom(sizeBytes)
    const fetched = await this.options.fetch(origin)
    // Another part of a pipeline may have written or read it.
    if (file.bytes !== undefined) return file.bytes
    file.bytes = fetched
    this.kept.add(file)
    this.keptBytes += fetched.length
    return fetched
  }

  private write(file: FileNode, bytes: Uint8Array, path: string): void {
    const { maxFileBytes, maxBytes } = this.options
    if (bytes.length > maxFileBytes) {
      throw new FileSystemError('EFBIG', `a file has at most ${maxFileBytes} bytes`, path)
    }
    const replacedBytes = file.isWritten ? file.sizeBytes : 0
    if (this.writtenBytes - replacedBytes + bytes.length > maxBytes) {
      throw new FileSystemError('ENOSPC', `one command may write at most ${maxBytes} bytes`, path)
    }
    if (!file.isWritten) this.tree.count()
    this.release(file)
    this.makeRoom(bytes.length)
    Object.assign(file, {
      bytes,
      sizeBytes: bytes.length,
      isWritten: true,
      mtime: new Date(),
    } satisfies Partial<FileNode>)
    this.writtenBytes += bytes.length
  }

  /** Drops cached contents that were only read, beyond the limit. */
  private makeRoom(bytes: number): void {
    if (this.writtenBytes + this.keptBytes + bytes <= this.options.maxBytes) return
    for (const file of this.kept) file.bytes = undefined
    this.kept.clear()
    this.keptBytes = 0
  }

  /** Records that a content was dropped. */
  private release(file: FileNode): void {
    if (this.kept.delete(file)) this.keptBytes -= file.sizeBytes
    else if (file.isWritten) this.writtenBytes -= file.sizeBytes
  }
}

function sentenceOf(failures: FileSystemError[]): string {
  const shown = failures.slice(0, MAX_FAILURES_SHOWN).map(({ message }) => message)
  const left = failures.length - shown.length
  return [...shown, ...(left > 0 ? [`${left} more were not copied`] : [])].join('; ')
}

const sizeOf = (changes: FileChange[]): number =>
  changes.reduce((sum, change) => sum + (change.do === 'write' ? change.bytes.length : 0), 0)

const toCheck = ({ origin, isWritten }: FileNode): FileChange[] =>
  origin === undefined || isWritten ? [] : [{ do: 'check', path: origin.path, was: origin.contentId }]

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
const join = (path: string, name: string): string => `${path === '/' ? '' : path}/${name}`
const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))
const isWithin = (path: string, directory: string): boolean => path === directory || path.startsWith(`${directory}/`)
const encodingOf = (options?: { encoding?: BufferEncoding | null } | BufferEncoding | null) =>
  typeof options === 'string' ? options : (options?.encoding ?? undefined)

function toBytes(content: FileContent, options?: Parameters<IFileSystem['writeFile']>[2]): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content, encodingOf(options) ?? 'utf8') : new Uint8Array(content)
}

const identities = new WeakMap<TreeNode, string>()
let lastIdentity = 0

/** Returns the identity of a file, independent of its name. */
function identityOf(node: TreeNode): string {
  const identity = identities.get(node) ?? String(++lastIdentity)
  identities.set(node, identity)
  return identity
}

function toStat(node: TreeNode): FsStat {
  const { isDirectory, mtime } = node
  const kind = { isFile: !isDirectory, isDirectory, isSymbolicLink: false, mtime, identity: identityOf(node) }
  if (node.isDirectory) return { ...kind, mode: DIRECTORY_MODE, size: 0 }
  return { ...kind, mode: node.isReadonly ? WRITE_PROTECTED_MODE : FILE_MODE, size: node.sizeBytes }
}

function checkReplaced(node: TreeNode, replaced: TreeNode, path: string): void {
  if (replaced.isDirectory && !node.isDirectory) throw new FileSystemError('EISDIR', 'is a directory', path)
  if (!replaced.isDirectory && node.isDirectory) throw new FileSystemError('ENOTDIR', 'not a directory', path)
  if (!replaced.isDirectory && replaced.isReadonly) throw new FileSystemError('EACCES', 'the file is read-only', path)
}
