/** Model that plays the script in its agent's prompt. */
export const SCRIPTED_MODEL = 'model_01933b5a000070008000000000000107'

/** An agent to try. `script` is what a simulated model plays without a provider; `say` is a message to begin with. */
export type ExampleAgent = {
  id: string
  name: string
  description: string
  prompt: string
  capabilities: string[]
  /** Set for an agent with the tools of the MCP server. */
  needsServer?: true
  /** Set for an agent that a schedule runs. */
  isScheduled?: true
  script: object[]
  say: string
}

const idOf = (number: number): string => `agent_01933b5a0000700080000000000009${`${number}`.padStart(2, '0')}`

const SALES = 'town,units\nLisbon,3\nPorto,7\nLisbon,5\n'
const SUM = "tail -n +2 sales.csv | awk -F, '{sum[$1] += $2} END {for (town in sum) print town, sum[town]}' | sort"

export const examples: ExampleAgent[] = [
  {
    id: idOf(1),
    name: 'File worker',
    description: 'Works on files with bash and keeps figures in a database.',
    prompt:
      'You work on the files of the session. Use bash for texts and tables. Keep figures that are asked for again in the database ' +
      '"figures". Say in one sentence what you did, and name the files.',
    capabilities: ['session_file_system', 'virtual_bash', 'session_sql_database'],
    script: [
      { tool_calls: [{ name: 'write_file', arguments: { path: '/sales.csv', content: SALES } }] },
      { tool_calls: [{ name: 'bash', arguments: { command: `${SUM} | tee totals.txt` } }] },
      {
        tool_calls: [
          {
            name: 'sql_execute',
            arguments: {
              database: 'figures',
              sql: "CREATE TABLE totals (town TEXT, units INTEGER); INSERT INTO totals VALUES ('Lisbon', 8), ('Porto', 7)",
            },
          },
        ],
      },
      { text: 'Lisbon sold 8 and Porto 7: /totals.txt has it, and the table totals of the database figures.' },
    ],
    say: 'Make a table of sales by town, sum it up with bash, and keep the totals in a database.',
  },
  {
    id: idOf(2),
    name: 'Calculator',
    description: 'Calculates with the tools of an MCP server.',
    prompt: 'You calculate with your tools, never in your head.',
    capabilities: [],
    needsServer: true,
    script: [
      { tool_calls: [{ name: 'mcp_everything__get-sum', arguments: { a: 2, b: 40 } }] },
      { text: 'The sum of 2 and 40 is 42.' },
    ],
    say: 'What is the sum of 2 and 40?',
  },
  {
    id: idOf(3),
    name: 'Reporter',
    description: 'Writes a report in a session of its own, each working day at 8 o’clock UTC.',
    prompt: 'You write a short report of the day into /report.md: the date, and three things worth doing.',
    capabilities: ['session_file_system', 'current_time'],
    isScheduled: true,
    script: [
      {
        tool_calls: [
          { name: 'write_file', arguments: { path: '/report.md', content: '# Today\n\n1. Read\n2. Write\n3. Rest\n' } },
        ],
      },
      { text: 'The report is in /report.md.' },
    ],
    say: 'Write the report of today.',
  },
]
