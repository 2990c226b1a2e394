import type { Tool } from '../../capability.ts'
import {
  commonArguments,
  limitSchema,
  listNames,
  nameSchema,
  type Operations,
  operationOf,
  TOOL_MS,
} from './operations.ts'

const OPERATIONS: Operations = {
  get: { needs: ['name'] },
  set: { needs: ['name', 'value'] },
  delete: { needs: ['name'] },
  list: { needs: [], takes: ['prefix', 'offset', 'limit'] },
}

export const secretStore: Tool = {
  name: 'secret_store',
  displayName: 'Secrets',
  description:
    'Keeps credentials of this session encrypted, by name: "set" stores or replaces one, "get" reads it, "delete" removes it, "list" shows names in their order. next_offset is where to go on; it is null at the end.',
  parameters: {
    type: 'object',
    properties: {
      ...commonArguments,
      name: nameSchema('For get, set and delete: the name of the secret, such as "weather_api_key".'),
      value: {
        type: 'string',
        description: 'For set: the secret, at most 64 KiB of UTF-8. Give several that belong together as JSON text.',
      },
      offset: { type: 'integer', minimum: 0, maximum: 2_000_000, description: 'For list: how many names to skip.' },
      limit: limitSchema,
    },
    required: ['operation'],
    additionalProperties: false,
  },
  secrets: { arguments: ['value'], results: ['value'] },
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  async run(args, { storage }) {
    const name = String(args.name)
    switch (operationOf(args, OPERATIONS)) {
      case 'get': {
        const value = await storage.readSecret(name)
        return { value: value === undefined ? { name, found: false } : { name, found: true, value } }
      }
      case 'set':
        return { value: { name, replaced: (await storage.set('secret', name, String(args.value))).existed } }
      case 'delete':
        return { value: { name, deleted: (await storage.delete('secret', name)).existed } }
      case 'list': {
        const { items, next_offset } = await listNames(storage, 'secret', args)
        return { value: { secrets: items, next_offset } }
      }
    }
  },
}
