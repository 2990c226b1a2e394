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

  it('begins with what a reader needs, links to the guides, and declares 431 everywhere', () => {
    const { tags, paths, externalDocs } = openapiDocument(endpoints, { version: '1', prefix: '', isOpen: true })
    const names = tags.map(({ name }) => name)
    expect(names.slice(0, 3)).toEqual(['sessions', 'agents', 'messages'])
    expect(names.slice(-2)).toEqual(['audit', 'health'])
    expect(externalDocs.url).toBe('docs/building-a-chat.md')
    for (const item of Object.values(paths))
      for (const operation of Object.values(item)) expect(operation).toMatchObject({ responses: { 431: {} } })
  })

  it('has no path of a file that is too long for the head of a request', () => {
    const { paths } = openapiDocument(endpoints, { version: '1', prefix: '', isOpen: true })
    for (const method of ['get', 'post', 'put', 'delete']) {
      expect(paths['/v1/sessions/{session_id}/fs/{path}']?.[method]).toMatchObject({
        parameters: expect.arrayContaining([
          expect.objectContaining({ name: 'path', schema: expect.objectContaining({ maxLength: 1024 }) }),
        ]),
      })
    }
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
      schema: { type: 'integer', format: 'int32', minimum: 1, maximum: 1000, description: expect.any(String) },
    })
  })
})
