import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import type { Context } from 'koa'
import type { MultipartBody } from '../../contract/kit/endpoint.ts'
import { arrivalOf } from './arrival.ts'
import { refuseTinyPieces } from './body.ts'
import type { BodyHold } from './body-memory.ts'
import { RequestError } from './errors.ts'
import { parse } from './parse.ts'
import { checkText } from './text.ts'

/** File that is still arriving, with the form fields that preceded it. */
export type Upload<Fields = unknown> = { fields: Fields; file: UploadedFile }

export type UploadedFile = {
  /** File name given by the client, without folders; undefined when there is none. */
  name: string | undefined
  /** Content type claimed by the client. */
  contentType: string
  /**
   * Chunks as they arrive; can be read once. The last one is followed by an error when the request was invalid:
   * RequestError 400, 408, 413 or 503. The caller's credential is checked again then, and may fail, too.
   */
  chunks: AsyncIterable<Uint8Array>
}

/** Upload with the operations that only the server uses. */
export type ReceivedUpload = Upload & {
  /** Returns the value by which repeated uploads are recognized. Throws before the file has been read to its end. */
  fingerprint(): unknown
  /** Discards what has not been read. */
  discard(): void
}

const FIELD_BYTES = 64 * 1024
const NAME_BYTES = 1024
const HEADER_BYTES = 8 * 1024
const MAX_HEADERS = 20
/** Maximum number of undeclared parts, which are ignored. */
const MORE_PARTS = 20

/** Memory for a file that is read whole, and a check of the caller's credential when all has arrived. */
export type UploadReading = { hold: BodyHold; recheck: () => Promise<void> }

/** Reads a multipart body up to the start of its file. Throws RequestError 400, 408, 413 or 415. */
export async function readMultipart(
  ctx: Context,
  declared: MultipartBody,
  { hold, recheck }: UploadReading,
): Promise<ReceivedUpload> {
  const arrival = arrivalOf(ctx)
  const stop = new AbortController()
  const signal = AbortSignal.any([stop.signal, arrival.signal])
  signal.addEventListener('abort', arrival.dropRest)
  const discard = () => stop.abort(new RequestError(400, 'The upload was not read to its end'))
  try {
    // A signal that has already aborted does not fire its event again.
    signal.throwIfAborted()
    const parser = createParser(ctx, declared)
    arrival.allowUpload()
    const form = openForm(parser, declared, stop, signal)
    feed(ctx.req, parser, { limitBytes: bodyLimit(declared), stop, signal })
    const part = await form.opened
    checkText({ ...form.fields, [declared.file.field]: part.name }, 'The form')
    const fields = declared.fields && parse(declared.fields, form.fields, 'The form')
    const count = (bytes: number) => (declared.file.inMemory ? hold.add(bytes, 'plain') : undefined)
    const end = () => form.finished.then(recheck)
    const { chunks, digest } = createReader(part.stream, signal, { count, end })
    const { name, contentType } = part
    return {
      fields,
      file: { name, contentType, chunks },
      // The fields are used as sent, because their parsed form may change. A file that is read whole is only its bytes.
      fingerprint: () =>
        declared.file.inMemory ? [form.fields, digest()] : [form.fields, name, contentType, digest()],
      discard,
    }
  } catch (error) {
    discard()
    throw error
  }
}

function createParser(ctx: Context, declared: MultipartBody): BusboyInstance {
  const { file, fields } = declared
  if (!ctx.is('multipart/form-data')) throw new RequestError(415, 'The Content-Type must be multipart/form-data')
  if ((ctx.get('Content-Encoding') || 'identity') !== 'identity') {
    throw new RequestError(415, 'The content encoding of the body is not supported')
  }
  if ((ctx.request.length ?? 0) > bodyLimit(declared)) throw tooLarge(declared)
  const isPartAFile = (name?: string, _type?: string, fileName?: string) =>
    name === file.field || fileName !== undefined
  const limits = {
    fieldSize: FIELD_BYTES,
    fileSize: file.maxBytes,
    parts: Object.keys(fields?.shape ?? {}).length + 1 + MORE_PARTS,
    headerSize: HEADER_BYTES,
    headerPairs: MAX_HEADERS,
  }
  try {
    return new Busboy({ headers: { ...ctx.headers, 'content-type': ctx.get('Content-Type') }, limits, isPartAFile })
  } catch {
    throw new RequestError(400, 'The Content-Type has no boundary')
  }
}

/** Maximum length of the whole body, in bytes, including everything beside the file. */
const bodyLimit = ({ file, fields }: MultipartBody): number =>
  file.maxBytes + (Object.keys(fields?.shape ?? {}).length + 1) * FIELD_BYTES + MORE_PARTS * HEADER_BYTES

const tooLarge = ({ file }: MultipartBody) =>
  new RequestError(file.tooLargeStatus ?? 413, `${file.field}: must be at most ${file.maxBytes} bytes`)

/** Returns a well-formed media type, or application/octet-stream instead of a malformed one. */
const mediaType = (claimed: string): string =>
  /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(claimed) ? claimed : 'application/octet-stream'

type OpenFile = { stream: BusboyFileStream; name: string | undefined; contentType: string }

/**
 * Handles the parts of a form. `opened` resolves when the file begins, `finished` when the form has ended. Problems
 * abort `stop`.
 */
function openForm(parser: BusboyInstance, declared: MultipartBody, stop: AbortController, signal: AbortSignal) {
  const fields: Record<string, string> = {}
  const opened = Promise.withResolvers<OpenFile>()
  const finished = Promise.withResolvers<void>()
  // There may be no one to handle the rejection.
  finished.promise.catch(() => {})
  let file: BusboyFileStream | undefined
  const refuse = (problem: RequestError | undefined) => problem && stop.abort(problem)
  signal.addEventListener('abort', () => {
    opened.reject(signal.reason)
    finished.reject(signal.reason)
    file?.destroy(signal.reason)
  })
  parser.on('file', (name, stream, fileName, _encoding, contentType) => {
    // The reader, if there is one, gets the error itself.
    stream.on('error', () => {})
    const problem = problemOfFile(declared, name, fileName, file !== undefined)
    if (problem !== undefined) return refuse(problem)
    file = stream
    stream.on('limit', () => refuse(tooLarge(declared)))
    opened.resolve({ stream, name: fileName || undefined, contentType: mediaType(contentType) })
  })
  parser.on('field', (name, value, _isNameCut, isCut) => {
    refuse(problemOfField(declared, name, isCut, { isAfterFile: file !== undefined, fields }))
    if (isDeclared(declared, name)) fields[name] = value
  })
  parser.on('partsLimit', () => refuse(bad('The multipart body has too many parts')))
  parser.on('error', () => refuse(bad('The multipart body is malformed or incomplete')))
  parser.on('finish', () => {
    if (file === undefined) refuse(bad(`${declared.file.field}: is required`))
    finished.resolve()
  })
  return { fields, opened: opened.promise, finished: finished.promise }
}

const bad = (sentence: string) => new RequestError(400, sentence)

function problemOfFile(
  { file: { field } }: MultipartBody,
  name: string,
  fileName: string | undefined,
  isSecond: boolean,
) {
  if (name !== field) return bad(`${shown(name)}: must not be a file; send the file as "${field}"`)
  if (isSecond) return bad(`${field}: must be given once`)
  if (Buffer.byteLength(fileName ?? '') > NAME_BYTES)
    return bad(`${field}: must have a file name of at most ${NAME_BYTES} bytes`)
  return undefined
}

type Before = { isAfterFile: boolean; fields: Record<string, string> }

function problemOfField(declared: MultipartBody, name: string, isCut: boolean, { isAfterFile, fields }: Before) {
  if (isCut) return new RequestError(413, `${shown(name)}: must be at most ${FIELD_BYTES} bytes`)
  if (!isDeclared(declared, name)) return undefined
  if (isAfterFile) return bad(`${name}: must come before the file`)
  if (Object.hasOwn(fields, name)) return bad(`${name}: must be given once`)
  return undefined
}

const isDeclared = ({ fields }: MultipartBody, name: string): boolean => Object.hasOwn(fields?.shape ?? {}, name)

const shown = (name: string | undefined): string => (name ?? 'A part without a name').slice(0, 200)

type Feeding = { limitBytes: number; stop: AbortController; signal: AbortSignal }

/** Passes arriving data to the parser as fast as it takes it, and discards it once the signal has aborted. */
function feed(req: IncomingMessage, parser: BusboyInstance, { limitBytes, stop, signal }: Feeding): void {
  let bytes = 0
  let pieces = 0
  req.on('data', (chunk: Uint8Array) => {
    if (signal.aborted) return
    bytes += chunk.length
    try {
      refuseTinyPieces(++pieces, bytes)
    } catch (error) {
      return stop.abort(error)
    }
    if (bytes > limitBytes)
      return stop.abort(new RequestError(413, `The request body must be at most ${limitBytes} bytes`))
    if (parser.write(chunk) || signal.aborted) return
    req.pause()
    parser.once('drain', () => req.resume())
  })
  req.once('end', () => parser.end())
}

/** Called for each chunk with its size, and after the last one. */
type Watching = { count(bytes: number): void; end(): Promise<void> }

/** Returns the file's chunks, and their digest for when they have all been read. */
export function createReader(stream: AsyncIterable<Uint8Array>, signal: AbortSignal, { count, end }: Watching) {
  const hash = createHash('sha256')
  let digest: string | undefined
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of stream) {
        count(chunk.length)
        hash.update(chunk)
        yield chunk
      }
    } catch (error) {
      // The parser only reports that the end is missing; the signal has the cause.
      throw signal.aborted ? signal.reason : error
    }
    await end()
    digest = hash.digest('hex')
  }
  return {
    chunks: chunks(),
    digest: (): string => {
      if (digest === undefined) throw new Error('The file has to be read to its end before anything is created of it')
      return digest
    },
  }
}
