import type { Tool } from '../../capability.ts'
import { nameSchema, paramsSchema, parseName, SQL_TOOL_MS, sqlTextSchema, statementOf } from './arguments.ts'

export const sqlExecute: Tool = {
  name: 'sql_execute',
  displayName: 'Change a database',
  description:
    'Runs SQL that changes a SQLite database of the session: CREATE TABLE, INSERT, UPDATE, DELETE and so on. Several statements are separated by semicolons. They are one transaction: all of them have their effect, or none; BEGIN and COMMIT are not needed. Makes the database if there is none of this name. Put values into params instead of the SQL.',
  parameters: {
    type: 'object',
    properties: {
      database: nameSchema('The name of the database: letters, digits and underscores.'),
      sql: sqlTextSchema('The SQL statements.'),
      params: paramsSchema,
    },
    required: ['database', 'sql'],
    additionalProperties: false,
  },
  timeoutMs: SQL_TOOL_MS,
  mayRunAgain: true,
  run: async (args, { databases, mayHaveRun }) => ({
    value: await databases.execute(parseName(args.database), statementOf(args), { mayHaveRun }),
  }),
}
