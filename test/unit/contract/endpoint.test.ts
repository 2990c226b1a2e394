import { z } from 'zod'
import { endpoints } from '../../../contract/index.ts'
import { declaredErrors, type Endpoint, group, impliedErrors } from '../../../contract/kit/endpoint.ts'

describe('a group of endpoints', () => {
  const pets = group(
    { tag: 'pets', path: '/v1/pets', access: 'member' },
    {
      list: { operationId: 'planted', method: 'GET', summary: 'Lists pets', responses: { 200: z.object({}) } },
      get: {
        operationId: 'planted',
        method: 'GET',
        at: '/{pet_id}',
        access: 'public',
        summary: 'Gets a pet',
        responses: { 200: z.object({}) },
      },
    },
  )

  it('gives each endpoint its tag, path and access', () => {
    expect(pets.list).toMatchObject({
      tag: 'pets',
      path: '/v1/pets',
      access: 'member',
      operationId: 'planted',
      method: 'GET',
    })
  })

  it('appends the rest of a path to its own, and lets an endpoint override the access', () => {
    expect(pets.get).toEqual({
      tag: 'pets',
      path: '/v1/pets/{pet_id}',
      access: 'public',
      operationId: 'planted',
      method: 'GET',
      summary: 'Gets a pet',
      responses: { 200: expect.anything() },
    })
  })
})

describe('the errors of an endpoint', () => {
  const plain: Endpoint = {
    operationId: 'planted',
    method: 'GET',
    path: '/v1/pets',
    tag: 'pets',
    access: 'public',
    summary: '',
    responses: {},
  }

  it.each<[string, Partial<Endpoint>, number[]]>([
    ['anybody may call', {}, [400, 431, 500, 503]],
    ['needs any login', { access: 'login' }, [400, 401, 403, 431, 500, 503]],
    ['is of an organization', { access: 'member' }, [400, 401, 403, 404, 429, 431, 500, 503]],
    ['has a parameter in its path', { path: '/v1/pets/{pet_id}' }, [400, 404, 431, 500, 503]],
    ['may have a body', { operationId: 'planted', method: 'DELETE' }, [400, 408, 413, 415, 431, 500, 503]],
    [
      'creates something',
      { operationId: 'planted', method: 'POST', creates: true },
      [400, 408, 409, 413, 415, 431, 500, 503],
    ],
    ['streams', { streams: 'Pets' }, [400, 429, 431, 500, 503]],
    ['declares some of its own', { errors: [409, 401] }, [400, 401, 409, 431, 500, 503]],
  ])('follow from its declaration when it %s', (_, more, errors) => {
    expect(declaredErrors({ ...plain, ...more })).toEqual(errors)
  })

  it('are not repeated where the declaration implies them', () => {
    const repeated = endpoints.flatMap((endpoint) =>
      (endpoint.errors ?? [])
        .filter((status) => impliedErrors(endpoint).includes(status))
        .map((status) => `${endpoint.method} ${endpoint.path} ${status}`),
    )
    expect(repeated).toEqual([])
  })
})
