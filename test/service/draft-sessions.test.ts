import { createScriptedAgent } from '../support/agents.ts'
import { call, expectError, type Json, modelId, textMessage } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { addSkill } from '../support/skills.ts'

let api: Organization
let script: string
beforeAll(async () => {
  api = await newOrganization()
  script = await modelId(api, 'llmsim-script')
})

const promptOf = (...steps: object[]) => `\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``
const draft = (more: object) => call(api, 'POST', '/v1/sessions', { model_id: script, ...more })
const run = async (id: string): Promise<Json> =>
  (await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Go'))).body
const textOf = ({ output }: Json): string => output.content[0].text
const ADDS = { tool_calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }
/** Statuses of the calls in a session. */
async function resultsOf(id: string): Promise<string[]> {
  const { body } = await call(api, 'GET', `/v1/sessions/${id}/events?types=tool.completed&limit=100`)
  return body.data.map(({ data }: Json) => data.status)
}

describe('a session with a draft', () => {
  it('runs it instead of the prompt, the capabilities and the tools of its agent, and so do its forks', async () => {
    const skill = await addSkill(api, 'notes', { '/SKILL.md': 'Note it.' })
    const capabilities = ['test_math', 'session_file_system', `skill:${skill}`]
    const agent_id = await createScriptedAgent(api, [{ text: 'saved' }], { capabilities })
    const draft_prompt = promptOf(ADDS, { text: 'draft' })
    const bare = await draft({ agent_id, draft_prompt })
    expect(bare).toMatchObject({ status: 201, body: { agent_id, draft_prompt, features: [], capabilities: [] } })
    const equipped = await draft({ agent_id, draft_prompt, capabilities: ['test_math'] })
    const saved = await draft({ agent_id })
    expect(saved.body).toMatchObject({ draft_prompt: null, features: ['file_system'] })
    const answers = await Promise.all([bare, equipped, saved].map(({ body }) => run(body.id)))
    expect(answers.map(textOf)).toEqual(['draft', 'draft', 'saved'])
    expect(await resultsOf(bare.body.id)).toEqual(['error'])
    expect(await resultsOf(equipped.body.id)).toEqual(['success'])
    const skillIn = ({ body }: Json) => call(api, 'GET', `/v1/sessions/${body.id}/fs/skills/notes/SKILL.md`)
    expect([await skillIn(saved), await skillIn(bare)]).toMatchObject([{ status: 200 }, { status: 404 }])
    const fork = await call(api, 'POST', `/v1/sessions/${equipped.body.id}/fork`, {})
    expect(fork.body.session).toMatchObject({ agent_id, draft_prompt, capabilities: [{ ref: 'test_math' }] })
    const { body } = await call(api, 'GET', `/v1/sessions?agent_id=${agent_id}`)
    const listed = body.data.map(({ id, draft_prompt, features }: Json) => [id, draft_prompt, features])
    expect(listed).toContainEqual([bare.body.id, null, []])
    expect(listed).toContainEqual([saved.body.id, null, ['file_system']])
    expect((await call(api, 'GET', `/v1/sessions/${bare.body.id}`)).body).toMatchObject({ draft_prompt, features: [] })
  })

  it('keeps the limits of its agent, and needs no agent', async () => {
    const agent_id = await createScriptedAgent(api, [{ text: 'saved' }], { limits: { max_model_calls: 1 } })
    const draft_prompt = promptOf(ADDS, { text: 'draft' })
    const capabilities = ['test_math']
    const [limited, free] = [
      await draft({ agent_id, draft_prompt, capabilities }),
      await draft({ draft_prompt, capabilities }),
    ]
    expect((await run(limited.body.id)).turn.status).toBe('failed')
    expect(textOf(await run(free.body.id))).toBe('draft')
  })

  it('is refused with a script that cannot run, a version, and an archived agent', async () => {
    expectError(await draft({ draft_prompt: '```llmsim\n{\n```' }), 400, /^draft_prompt: /)
    const agent_id = await createScriptedAgent(api, [{ text: 'saved' }])
    const agent_version = 1
    const path = `/v1/sessions/${(await draft({ agent_id, draft_prompt: 'Help.' })).body.id}`
    for (const refused of [
      await draft({ agent_id, agent_version, draft_prompt: 'Help.' }),
      await call(api, 'PATCH', path, { agent_version }),
      await call(api, 'POST', `${path}/fork`, { agent_version }),
    ]) {
      expectError(refused, 400, /^agent_version: .*draft_prompt/)
    }
    expect((await call(api, 'PATCH', path, { agent_version: 0 })).status).toBe(200)
    await call(api, 'DELETE', `/v1/agents/${agent_id}`)
    expectError(await draft({ agent_id, draft_prompt: 'Help.' }), 400, /^agent_id: /)
  })
})
