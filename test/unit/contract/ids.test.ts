import { z } from 'zod'
import { CreateAgentRequest } from '../../../contract/agents.ts'
import { AgentId, fromId, ImageId, SessionId, toId, wireId } from '../../../contract/kit/ids.ts'
import { CreateMessageRequest } from '../../../contract/messages.ts'
import { CreateSessionRequest } from '../../../contract/sessions.ts'
import { newUuid, setCell } from '../../../domain/kit/ids.ts'

const HEX = '0193aaaabbbb7ccc8ddd0123456789ab'
const UUID = '0193aaaa-bbbb-7ccc-8ddd-0123456789ab'

describe('an id in a request', () => {
  it('is a UUID once it is parsed', () => {
    expect(AgentId.parse(`agent_${HEX}`)).toBe(UUID)
    expect([SessionId.parse(`session_${HEX}`), SessionId.parse(`sess_${HEX}`)]).toEqual([UUID, UUID])
    expect([ImageId.parse(`img_${HEX}`), ImageId.parse(UUID)]).toEqual([UUID, UUID])
  })

  it.each([UUID, HEX, `session_${HEX}`, `agent_${HEX}0`, `agent_${HEX.toUpperCase()}`, ` agent_${HEX}`, 'agent_', ''])(
    'is refused in any other form: %j',
    (id) => {
      const { error } = AgentId.safeParse(id)
      expect(error?.issues[0]?.message).toBe('must be agent_ followed by 32 lower-case hex digits')
    },
  )
})

describe('the ids of a workflow', () => {
  it('are read in the form of the API, and as the plain UUIDs of earlier releases', () => {
    expect([fromId(`session_${HEX}`), fromId(`org_${HEX}`), fromId(UUID)]).toEqual([UUID, UUID, UUID])
  })
})

describe('an id in an answer', () => {
  it('has the long prefix', () => {
    expect(toId('session', UUID)).toBe(`session_${HEX}`)
    expect(wireId('session').safeParse(toId('session', UUID)).success).toBe(true)
    expect(wireId('session').safeParse(`sess_${HEX}`).success).toBe(false)
  })
})

/** Stored fingerprints of requests with an Idempotency-Key were computed from requests as they came. */
describe('a request that was parsed', () => {
  it.each<[string, z.ZodType, unknown]>([
    ['an agent', CreateAgentRequest, { id: `agent_${HEX}`, name: 'A', system_prompt: '', default_model_id: null }],
    ['a session', CreateSessionRequest, { agent_id: `agent_${HEX}`, harness_id: `harness_${HEX}`, tags: ['a'] }],
    [
      'a message',
      CreateMessageRequest,
      {
        message: { role: 'user', content: [{ type: 'image_file', image_id: UUID }] },
        controls: { model_id: `model_${HEX}`, reasoning: { effort: 'low' } },
        metadata: { b: 1, a: 2 },
        on_busy: 'reject',
      },
    ],
  ])('can be encoded as it was sent: %s', (_, schema, request) => {
    expect(JSON.stringify(z.encode(schema, schema.parse(request)))).toBe(JSON.stringify(request))
  })
})

describe('a new id', () => {
  afterEach(() => setCell(undefined))

  it.each([
    [0, '00'],
    [26, '1a'],
    [255, 'ff'],
  ])('of cell %i ends with %s', (cell, end) => {
    setCell(cell)
    const ids = Array.from({ length: 1000 }, newUuid)
    for (const id of ids) expect(id).toMatch(new RegExp(`^.{8}-.{4}-7.{3}-[89ab].{3}-.{10}${end}$`))
    expect(new Set(ids).size).toBe(1000)
    expect(ids).toEqual(ids.toSorted())
  })

  it('ends at random without a cell', () => {
    expect(new Set(Array.from({ length: 1000 }, () => newUuid().slice(-2))).size).toBeGreaterThan(100)
  })
})
