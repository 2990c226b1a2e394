import type { Tool } from '../../capability.ts'
import { nameSchema, parseName, SQL_TOOL_MS } from './arguments.ts'

export const sqlSchema: Tool = {
  name: 'sql_schema',
  displayName: 'Describe a database',
  description: 'Describes a SQLite database of the session: its tables with their columns and their number of rows.',
  parameters: {
    type: 'object',
    properties: { database: nameSchema('The name of the database.') },
    required: ['database'],
    additionalProperties: false,
  },
  timeoutMs: SQL_TOOL_MS,
  mayRunAgain: true,
  run: async (args, { databases }) => {
    const database = parseName(args.database)
    return { value: { database, ...(await databases.describe(database)) } }
  },
}
