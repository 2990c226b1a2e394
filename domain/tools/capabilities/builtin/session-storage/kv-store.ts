import type { SessionStorage } from '../../../../session-data/storage/session-storage.ts'
import { type Tool, ToolError } from '../../capability.ts'
import {
  commonArguments,
  limitSchema,
  listNames,
  nameSchema,
  type Operations,
  operationOf,
  TOOL_MS,
} from './operations.ts'

/** Maximum characters of a value in a result. As JSON they take at most 384 KiB, below the limit of results. */
const PART_CHARACTERS = 64 * 1024

const OPERATIONS: Operations = {
  get: { needs: ['key'], takes: ['offset'] },
  set: { needs: ['key', 'value'] },
  delete: { needs: ['key'] },
  list: { needs: [], takes: ['prefix', 'offset', 'limit'] },
}

export const kvStore: Tool = {
  name: 'kv_store',
  displayName: 'Values',
  description:
    'Keeps texts of this session by key, for later turns: "set" stores or replaces one, "get" reads it, "delete" removes it, "list" shows keys in their order, without values. next_offset is where to go on; it is null at the end.',
  parameters: {
    type: 'object',
    properties: {
      ...commonArguments,
      key: nameSchema('For get, set and delete: the name of the value, such as "user/language".'),
      value: {
        type: 'string',
        description: 'For set: the text, at most 1 MiB of UTF-8. Give any other value as JSON text.',
      },
      offset: {
        type: 'integer',
        minimum: 0,
        maximum: 2_000_000,
        description: `For list: how many keys to skip. For get: how many characters; a result has at most ${PART_CHARACTERS}.`,
      },
      limit: limitSchema,
    },
    required: ['operation'],
    additionalProperties: false,
  },
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  async run(args, { storage }) {
    const key = String(args.key)
    switch (operationOf(args, OPERATIONS)) {
      case 'get':
        return { value: await readPart(storage, key, Number(args.offset ?? 0)) }
      case 'set': {
        const value = String(args.value)
        const { existed } = await storage.set('value', key, value)
        return { value: { key, size_bytes: Buffer.byteLength(value), replaced: existed } }
      }
      case 'delete':
        return { value: { key, deleted: (await storage.delete('value', key)).existed } }
      case 'list': {
        const { items, next_offset } = await listNames(storage, 'value', args)
        return { value: { keys: items.map(({ name, ...item }) => ({ key: name, ...item })), next_offset } }
      }
    }
  },
}

async function readPart(storage: SessionStorage, key: string, offset: number) {
  const part = await storage.readValue(key, { offset, length: PART_CHARACTERS })
  if (part === undefined) return { key, found: false }
  const { text, totalCharacters, sizeBytes } = part
  if (offset > totalCharacters)
    throw new ToolError(`offset is ${offset}, but the value has ${totalCharacters} characters.`)
  const next = offset + PART_CHARACTERS
  return { key, found: true, value: text, size_bytes: sizeBytes, next_offset: next < totalCharacters ? next : null }
}
