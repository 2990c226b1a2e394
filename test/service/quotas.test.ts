import { call, createSession, expectQuota } from '../support/http.ts'
import { formOf, PIXEL } from '../support/pictures.ts'
import { startService, type TestService } from '../support/service.ts'
import { skillMd, skillZip } from '../support/zip.ts'

/** Quotas that are nothing here, so that the first request of each kind is one too many. */
const NONE = [
  'IMAGE_MAX_COUNT',
  'LLM_MAX_MODELS_PER_PROVIDER',
  'LLM_MAX_PROVIDERS',
  'MCP_MAX_SERVERS',
  'SCHEDULES_MAX_COUNT',
  'SESSION_FILES_MAX_COUNT',
  'SESSION_STORAGE_MAX_COUNT',
  'SKILLS_MAX_COUNT',
  'WEBHOOKS_MAX_COUNT',
]

let service: TestService
let session: string
let provider: string
beforeAll(async () => {
  service = await startService({ environment: Object.fromEntries(NONE.map((name) => [name, '0'])), worker: false })
  session = `/v1/sessions/${await createSession(service.url)}`
  provider = (await call(service.url, 'GET', '/v1/llm-providers')).body.data[0].id
})
afterAll(() => service.stop())

const SCHEDULE = { name: 'Daily', cron_expression: '0 0 * * *', target: { type: 'activity', name: 'noop' } }

describe('a quota that is used up is 409 with quota_exceeded', () => {
  it.each<[what: string, method: string, path: () => string, body: unknown]>([
    ['files', 'POST', () => `${session}/fs/a.txt`, { content: 'a' }],
    ['values', 'PUT', () => `${session}/storage/keys/a`, { value: 'a' }],
    ['secrets', 'PUT', () => `${session}/storage/secrets/a`, { value: 'a' }],
    ['images', 'POST', () => '/v1/images', formOf(PIXEL)],
    ['skills', 'POST', () => '/v1/skills', { skill_md: skillMd('a') }],
    ['uploaded skills', 'POST', () => '/v1/skills/upload', formOf(skillZip('a'))],
    ['MCP servers', 'POST', () => '/v1/mcp-servers', { name: 'A', url: 'https://mcp.example/mcp' }],
    ['LLM providers', 'POST', () => '/v1/llm-providers', { name: 'A', provider_type: 'llmsim' }],
    ['models', 'POST', () => `/v1/llm-providers/${provider}/models`, { model_id: 'llmsim-lorem-3', display_name: 'A' }],
    ['webhooks', 'POST', () => '/v1/webhooks', { url: 'https://hooks.example/', events: ['turn.failed'] }],
    ['schedules', 'POST', () => '/v1/durable/schedules', SCHEDULE],
  ])('%s', async (_, method, path, body) => {
    const answer = await call(service.url, method, path(), body)
    expectQuota(answer, /\b(at most|which is the limit)\b.*; \w+ (one|some) first/)
  })
})
