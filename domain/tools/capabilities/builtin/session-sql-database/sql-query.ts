import type { Tool } from '../../capability.ts'
import { nameSchema, paramsSchema, parseName, SQL_TOOL_MS, sqlTextSchema, statementOf } from './arguments.ts'

export const sqlQuery: Tool = {
  name: 'sql_query',
  displayName: 'Query a database',
  description:
    'Reads from a SQLite database of the session with one statement, such as a SELECT. Returns at most 1,000 rows of 1 MB together; when there are more, truncated is true. Blobs are returned as base64, integers beyond 2^53 as strings. Put values into params instead of the SQL.',
  parameters: {
    type: 'object',
    properties: {
      database: nameSchema('The name of the database.'),
      sql: sqlTextSchema('The statement.'),
      params: paramsSchema,
    },
    required: ['database', 'sql'],
    additionalProperties: false,
  },
  timeoutMs: SQL_TOOL_MS,
  mayRunAgain: true,
  run: async (args, { databases }) => ({
    value: await databases.query(parseName(args.database), statementOf(args)),
  }),
}
