import { z } from 'zod'
import { DateTime, listOf, sizeBytes } from './kit/common.ts'
import { fileBody, group } from './kit/endpoint.ts'
import { DeletedFilePath, EntryPath, FilePath, WrittenFilePath } from './kit/file-paths.ts'
import { SessionId, wireId, wireUuid } from './kit/ids.ts'
import { flag } from './kit/query.ts'

const FileFields = z.object({
  path: z.string().meta({ description: 'Absolute, without a slash at its end.' }),
  name: z.string(),
  is_directory: z.boolean(),
  is_readonly: z.boolean(),
  size_bytes: sizeBytes.meta({ description: 'Size of the content; 0 for a directory.' }),
  created_at: DateTime,
  updated_at: DateTime,
})

export const FileStat = FileFields.meta({ id: 'FileStat' })
export type FileStat = z.infer<typeof FileStat>

export const FileInfo = z
  .object({ id: wireUuid, session_id: wireId('session'), ...FileFields.shape })
  .meta({ id: 'FileInfo' })
export type FileInfo = z.infer<typeof FileInfo>

const Encoding = z.enum(['text', 'base64']).meta({ id: 'FileEncoding' })
export type FileEncoding = z.infer<typeof Encoding>

export const SessionFile = z
  .object({
    ...FileInfo.shape,
    content: z
      .string()
      .nullish()
      .meta({ description: 'Present when a file is read, or written with at most 65,536 characters.' }),
    encoding: Encoding.optional(),
  })
  .meta({ id: 'SessionFile' })
export type SessionFile = z.infer<typeof SessionFile>

/** Default of SESSION_FILE_MAX_BYTES, and its largest value. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024

/** Limit of a body with a file: base64 is a third larger than its bytes. */
const FILE_BODY_BYTES = 14 * 1024 * 1024
const RAW = { maxBytes: MAX_FILE_BYTES, inMemory: true } as const

const CreateFileRequest = z
  .object({
    content: z.string().nullish(),
    encoding: Encoding.nullish(),
    is_directory: z.boolean().nullish(),
    is_readonly: z.boolean().nullish(),
  })
  .refine(({ content, is_directory }) => !(is_directory && content), {
    error: 'must be left out for a directory',
    path: ['content'],
  })
  .meta({ id: 'CreateFileRequest' })
export type CreateFileRequest = z.infer<typeof CreateFileRequest>

const UpdateFileRequest = z
  .object({ content: z.string().nullish(), encoding: Encoding.nullish(), is_readonly: z.boolean().nullish() })
  .meta({ id: 'UpdateFileRequest' })
export type UpdateFileRequest = z.infer<typeof UpdateFileRequest>

const FromTo = z.object({ src_path: EntryPath, dst_path: WrittenFilePath })
const CopyFileRequest = FromTo.meta({ id: 'CopyFileRequest' })
const MoveFileRequest = FromTo.meta({ id: 'MoveFileRequest' })
const StatRequest = z.object({ path: FilePath }).meta({ id: 'StatRequest' })

const DeleteResponse = z.object({ deleted: z.boolean() }).meta({ id: 'DeleteResponse' })

/** Longest pattern in UTF-16 code units: compiling a longer one takes too much memory. */
export const MAX_PATTERN_LENGTH = 1000

const GrepRequest = z
  .object({
    pattern: z.string().min(1, { error: 'must not be empty' }).max(MAX_PATTERN_LENGTH).meta({
      description: 'A regular expression in RE2 syntax, matched against each line without its line break.',
    }),
    path_pattern: z.string().max(MAX_PATTERN_LENGTH).nullish().meta({
      description:
        'A glob, such as `/docs/**`. A pattern without a slash, such as `*.ts`, matches at any depth; with one, it starts at the root.',
    }),
  })
  .meta({ id: 'GrepRequest' })
export type GrepRequest = z.infer<typeof GrepRequest>

const GrepMatch = z
  .object({
    path: z.string(),
    line_number: z.int().min(1),
    line: z.string().meta({ description: 'The line without its line break. A long line is cut off.' }),
  })
  .meta({ id: 'GrepMatch' })
export type GrepMatch = z.infer<typeof GrepMatch>

const GrepResult = z.object({ path: z.string(), matches: z.array(GrepMatch) }).meta({ id: 'GrepResult' })
export type GrepResult = z.infer<typeof GrepResult>

const GrepResults = listOf(GrepResult).extend({
  truncated: z.boolean().optional().meta({ description: 'True if matches were left out.' }),
})

const ofSession = z.object({ session_id: SessionId })
const ofFile = z.object({ session_id: SessionId, path: FilePath })
const ofWrittenFile = z.object({ session_id: SessionId, path: WrittenFilePath })
const recursively = z.object({ recursive: flag })
/** Declared as octet-stream, which client generators know; the answer has the type of the file's name. */
const bytes = fileBody('application/octet-stream', "The file's bytes, when the query has `raw` or `download`.")

export const fileEndpoints = group(
  { tag: 'files', path: '/v1/sessions/{session_id}/fs', access: 'member' },
  {
    listRoot: {
      operationId: 'listRootDirectory',
      method: 'GET',
      summary: 'Lists the root directory, or downloads all files',
      params: ofSession,
      query: recursively.extend({
        archive: z.enum(['zip']).optional().meta({ description: 'Returns all files as an archive.' }),
      }),
      responses: { 200: listOf(FileInfo) },
      file: fileBody('application/zip', 'All files, when the query has `archive=zip`.'),
    },
    copy: {
      operationId: 'copyFile',
      method: 'POST',
      at: '/_/copy',
      summary: 'Copies a file',
      params: ofSession,
      body: CopyFileRequest,
      creates: true,
      responses: { 201: SessionFile },
    },
    move: {
      operationId: 'moveFile',
      method: 'POST',
      at: '/_/move',
      summary: 'Moves a file, or a directory with everything in it',
      params: ofSession,
      body: MoveFileRequest,
      responses: { 200: SessionFile },
      errors: [409],
    },
    stat: {
      operationId: 'statFile',
      method: 'POST',
      at: '/_/stat',
      summary: 'Describes a file or directory',
      params: ofSession,
      body: StatRequest,
      responses: { 200: FileStat },
    },
    grep: {
      operationId: 'grepFiles',
      method: 'POST',
      at: '/_/grep',
      summary: 'Searches the lines of files',
      description: 'Sorted by path and line, at most 10,000 lines and 4 MiB. Binary files are left out.',
      params: ofSession,
      body: GrepRequest,
      responses: { 200: GrepResults },
    },
    get: {
      operationId: 'getFile',
      method: 'GET',
      at: '/{path*}',
      summary: 'Gets a file, or lists a directory',
      description:
        'Lists the directories in a directory first, then the files; with `recursive`, everything below it, by path.',
      params: ofFile,
      query: recursively.extend({
        raw: flag.meta({ description: "Returns the bytes of the file, with the content type of the file's name." }),
        download: flag.meta({ description: 'Returns the bytes for a browser to save.' }),
      }),
      responses: { 200: z.union([SessionFile, listOf(FileInfo)]), 206: bytes, 304: null },
      file: bytes,
    },
    create: {
      operationId: 'createFile',
      method: 'POST',
      at: '/{path*}',
      summary: 'Creates a file or directory',
      description: 'Missing parent directories are created.',
      params: ofWrittenFile,
      body: CreateFileRequest,
      bodyOptional: true,
      bodyLimitBytes: FILE_BODY_BYTES,
      raw: RAW,
      creates: true,
      responses: { 201: SessionFile },
    },
    update: {
      operationId: 'updateFile',
      method: 'PUT',
      at: '/{path*}',
      summary: 'Replaces the content of a file, or protects it',
      params: ofWrittenFile,
      body: UpdateFileRequest,
      bodyOptional: true,
      bodyLimitBytes: FILE_BODY_BYTES,
      raw: RAW,
      responses: { 200: SessionFile },
      errors: [409],
    },
    delete: {
      operationId: 'deleteFile',
      method: 'DELETE',
      at: '/{path*}',
      summary: 'Deletes a file or directory',
      description: 'A directory that is not empty is deleted only with `recursive`.',
      params: z.object({ session_id: SessionId, path: DeletedFilePath }),
      query: recursively,
      responses: { 200: DeleteResponse },
    },
  },
)
