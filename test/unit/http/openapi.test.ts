import { openapiDocument } from '../../../api/http/openapi.ts'
import { endpoints } from '../../../contract/index.ts'

describe('the OpenAPI document', () => {
  it.each([
    ['names no credentials where nobody needs any', true, [], undefined],
    ['names both kinds of credentials where users sign in', false, [{ bearerAuth: [] }, { cookieAuth: [] }], 2],
  ])('%s', (_what, isOpen, security, schemes) => {
    const { paths, components } = openapiDocument(endpoints, { version: '1', prefix: '', isOpen })
    expect(paths['/v1/agents']?.get).toMatchObject({ security })
    expect(paths['/health']?.get).toMatchObject({ security: [] })
    expect(components.securitySchemes && Object.keys(components.securitySchemes).length).toBe(schemes)
  })

  it('describes a parameter of the query as clients write it', () => {
    const { paths } = openapiDocument(endpoints, { version: '1', prefix: '/api', isOpen: true })
    const list = paths['/api/v1/sessions/{session_id}/events']?.get as { parameters: { name: string }[] } | undefined
    const [types, limit] = ['types', 'limit'].map((name) => list?.parameters.find((one) => one.name === name))
    expect(types).toMatchObject({ schema: { type: 'array', maxItems: 25, items: { enum: expect.any(Array) } } })
    expect(limit).toEqual({
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 1000, description: expect.any(String) },
    })
  })
})
