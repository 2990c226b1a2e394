/** Model that repeats the user's text. Every installation has it. */
const ECHO = 'model_01933b5a000070008000000000000103'
const DEFAULT_ORGANIZATION = 'org_00000000000000000000000000000001'
const EMAIL = 'ada@example.com'
const PASSWORD = 'correct horse battery staple'

const AGENT = {
  name: 'Editor',
  description: 'Keeps notes short.',
  system_prompt: 'You edit notes. Answer in one paragraph.',
  default_model_id: ECHO,
  tags: ['notes'],
  capabilities: [{ ref: 'session_file_system' }],
}
const AGENT_DOCUMENT = `---
name: Editor
description: Keeps notes short.
capabilities: [session_file_system]
---

You edit notes. Answer in one paragraph.
`
const SKILL = `---
name: changelog
description: Writes a changelog from the commits of a release. Use it when a release is prepared.
---

# Changelog

One line for each change that a user notices, the newest first.
`
const CLIENT_TOOL = {
  type: 'client_side',
  name: 'ask_user',
  description: 'Asks the user a question and returns the answer.',
  parameters: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] },
}

/**
 * Example of each operation's body in the OpenAPI document, by operationId. Sent in this order, to the resources that
 * earlier ones created, all succeed unchanged. Only tokens must be the caller's own.
 */
export const examples: Record<string, unknown> = {
  register: { email: EMAIL, password: PASSWORD, name: 'Ada' },
  login: { email: EMAIL, password: PASSWORD },
  refreshTokens: { refresh_token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.the-one-of-the-last-answer' },
  createApiKey: { name: 'Nightly export', scopes: ['read'], expires_in_days: 90 },
  createOrganization: { name: 'Notes Inc.' },
  updateOrganization: { name: 'Notes and Sons' },
  createInvitation: { role: 'member', expires_in: 86_400 },
  joinOrganization: { token: `inv_${'0'.repeat(64)}` },
  updateMember: { role: 'admin' },
  switchOrganization: { org_id: DEFAULT_ORGANIZATION },
  createAgent: AGENT,
  importAgent: AGENT_DOCUMENT,
  previewAgent: { system_prompt: 'You edit notes.', capabilities: [{ ref: 'session_file_system' }] },
  putAgent: AGENT,
  updateAgent: { description: 'Keeps notes short and friendly.', tags: ['notes', 'friendly'] },
  createSession: { title: 'Release notes', tags: ['release'], model_id: ECHO, tools: [CLIENT_TOOL] },
  updateSession: { title: 'Release notes of June' },
  createMessage: { message: { content: [{ type: 'text', text: 'What is new?' }] } },
  compactSession: { instructions: 'Keep the open questions.' },
  forkSession: { title: 'Release notes, another way' },
  cancelTurns: {},
  leaseToolCall: { holder: 'backend-1' },
  submitToolResults: { tool_results: [{ tool_call_id: 'call_1', result: { answer: 'blue' } }] },
  cancelTurnsOfSessions: { status: ['queued', 'active'], search: 'notes' },
  createProvider: { name: 'Our OpenAI account', provider_type: 'openai', api_key: 'sk-0000' },
  updateProvider: { name: 'The OpenAI account' },
  createModel: { model_id: 'gpt-5-mini', display_name: 'GPT-5 mini' },
  updateModel: { is_favorite: true },
  createMcpServer: { name: 'Tickets', url: 'https://mcp.example.com/mcp', headers: { 'X-Team': 'notes' } },
  updateMcpServer: { description: 'The tickets of our team' },
  getMcpPrompt: { name: 'args-prompt', arguments: { city: 'Berlin' } },
  putOrganizationSecret: { value: 'ghp_example', hosts: ['api.github.com'] },
  createFile: { content: '# Plan\n\nWrite the notes.\n' },
  updateFile: { content: '# Plan\n\nWrite the notes, then rest.\n' },
  statFile: { path: '/plan.md' },
  grepFiles: { pattern: 'notes', path_pattern: '*.md' },
  copyFile: { src_path: '/plan.md', dst_path: '/drafts/plan.md' },
  moveFile: { src_path: '/drafts', dst_path: '/archive' },
  putKey: { value: 'de-DE' },
  putSecret: { value: 'ghp_example' },
  createDatabase: { name: 'notes' },
  queryDatabase: { sql: 'SELECT name FROM sqlite_schema WHERE type = ?', params: ['table'] },
  validateSkill: { skill_md: SKILL },
  createSkill: { skill_md: SKILL },
  updateSkill: { status: 'disabled' },
  createSchedule: {
    name: 'Weekly check',
    cron_expression: '0 9 * * 1',
    timezone: 'Europe/Berlin',
    target: { type: 'activity', name: 'noop' },
  },
  createBudget: { scope: 'organization', limit_usd: '100', period: 'month', on_reached: 'ask' },
  updateBudget: { limit_usd: '150' },
  restoreAgentVersion: { version_note: 'The change made answers too long.' },
  putTaskQueue: { encryption_key: 'q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=' },
  createWebhook: { url: 'https://hooks.example.com/agents', events: ['turn.failed', 'turn.waiting'] },
  updateWebhook: { events: ['turn.completed', 'turn.failed', 'turn.waiting'] },
  rotateWebhookSecret: {},
  updateSchedule: { cron_expression: '0 9 * * 1-5', max_concurrent: 1 },
}
