import type { Parser } from '../parser.ts'
import { ARCHIVES } from './archives.ts'
import { DOCUMENTS } from './documents.ts'
import { IMAGES } from './images.ts'
import { REQUESTS } from './requests.ts'
import { SERVERS } from './servers.ts'
import { STREAMS } from './streams.ts'
import { TIMES } from './times.ts'

/** All parsers of bytes that strangers send. */
export const PARSERS: readonly Parser[] = [
  ...IMAGES,
  ...ARCHIVES,
  ...DOCUMENTS,
  ...TIMES,
  ...REQUESTS,
  ...STREAMS,
  ...SERVERS,
]
