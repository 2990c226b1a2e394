import { createConfig, lintFromString } from '@redocly/openapi-core'
import { eventTypes } from '../../contract/events.ts'
import { endpoints } from '../../contract/index.ts'
import { call, type Json, unknownId } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
let document: Json
beforeAll(async () => {
  api = await newOrganization()
  const { status, body } = await call(api, 'GET', '/openapi.json')
  expect(status).toBe(200)
  document = body
})

const operations = (): [path: string, method: string, operation: Json][] =>
  Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, operation]): [string, string, Json] => [path, method, operation]),
  )

function* refsOf(value: Json): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  if (typeof value.$ref === 'string') yield value.$ref
  for (const inner of Object.values(value)) yield* refsOf(inner)
}

/** Yields the schemas in a part of the document. Properties may be called `type`, too. */
function* schemasOf(value: Json): Generator<Json> {
  if (typeof value !== 'object' || value === null) return
  if (typeof value.type === 'string' || Array.isArray(value.type)) yield value
  for (const inner of Object.values(value)) yield* schemasOf(inner)
}

type Union = { members: Json[]; discriminator: Json | undefined }

/** Yields the unions in a part of the document, each without null. */
function* unionsOf(value: Json): Generator<Union> {
  if (typeof value !== 'object' || value === null) return
  const members: Json[] = value.oneOf ?? value.anyOf ?? []
  yield { members: members.filter(({ type }) => type !== 'null'), discriminator: value.discriminator }
  for (const inner of Object.values(value)) yield* unionsOf(inner)
}

describe('the OpenAPI document', () => {
  it('is of version 3.1 with a title and a version', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/)
    expect(document.info).toMatchObject({ title: expect.any(String), version: 'test' })
  })

  it('refers only to what is in it', () => {
    const refs = new Set(refsOf(document))
    expect(refs.size).toBeGreaterThan(10)
    for (const ref of refs) {
      const name = ref.replace('#/components/schemas/', '')
      expect(Object.keys(document.components.schemas)).toContain(name)
    }
  })

  it('has valid component names, and no JSON Schema keywords that OpenAPI does not use', () => {
    for (const name of Object.keys(document.components.schemas)) expect(name).toMatch(/^[a-zA-Z0-9._-]+$/)
    expect(JSON.stringify(document)).not.toMatch(/"\$schema"|"\$defs"|"#\/\$defs/)
  })

  it('forbids no field that a later version may add', () => {
    expect(JSON.stringify(document)).not.toContain('"additionalProperties":false')
  })

  it('has what generators for typed languages need: one type a schema, formats of numbers, names without collisions', () => {
    const ids = operations().map(([, , { operationId }]) => operationId.toLowerCase())
    for (const name of Object.keys(document.components.schemas))
      expect(ids).not.toContain(name.toLowerCase().replace(/response$/, ''))
    for (const schema of schemasOf(document)) {
      const types = [schema.type ?? []].flat().filter((type) => type !== 'null')
      expect([schema, types.length]).toEqual([schema, Math.min(types.length, 1)])
      if (types.includes('integer')) expect(schema).toMatchObject({ format: expect.stringMatching(/^int(32|64)$/) })
      if (types.includes('number')) expect(schema).toMatchObject({ format: 'double' })
    }
    const { FileInfo, TurnCompletedData, ModelMetadata } = document.components.schemas
    expect(FileInfo.properties.size_bytes).toMatchObject({ format: 'int64' })
    expect(TurnCompletedData.properties.duration_ms.anyOf[0]).toMatchObject({ format: 'int64' })
    expect(ModelMetadata.properties.model_id.anyOf[0]).toMatchObject({ format: 'uuid' })
  })

  it('says what the data of a monitoring stream is', () => {
    const answer = document.paths['/v1/durable/sse'].get.responses['200']
    const { schema } = answer.content['text/event-stream']
    expect(schema).toMatchObject({ type: 'string', contentSchema: { $ref: '#/components/schemas/DurableSnapshot' } })
    const health = document.components.schemas.DurableHealth
    expect(health.properties.status).toMatchObject({ enum: ['healthy', 'warning', 'degraded'] })
    for (const field of Object.values<Json>(health.properties.turns.properties))
      expect(field).toMatchObject({ description: expect.stringMatching(/Null if (Temporal|Postgres) did not answer/) })
  })

  it('names the members of each union, and the field value that selects each', () => {
    const isPlain = ({ type }: Json) => ['string', 'number', 'boolean'].includes(type)
    const unions = [...unionsOf(document)].filter(({ members }) => members.length > 1 && !members.every(isPlain))
    expect(unions.length).toBeGreaterThan(4)
    for (const { members, discriminator } of unions) {
      const names = members.map(({ $ref }) => $ref)
      expect(names).toEqual(names.map(() => expect.stringMatching(/^#\/components\/schemas\/\w+$/)))
      if (discriminator === undefined) continue
      expect(Object.values(discriminator.mapping).sort()).toEqual(names.sort())
      for (const [value, name] of Object.entries<string>(discriminator.mapping)) {
        const { properties } = document.components.schemas[name.replace('#/components/schemas/', '')]
        expect(properties[discriminator.propertyName]).toMatchObject({ const: value })
      }
    }
  })

  it('tells the events apart by their type, each with data of its own', () => {
    const { discriminator } = document.components.schemas.Event
    expect(Object.keys(discriminator.mapping).sort()).toEqual([...eventTypes].sort())
    expect(document.components.schemas.TurnFailedEvent.properties.data).toEqual({
      $ref: '#/components/schemas/TurnFailedData',
    })
  })

  it('has no errors for a public linter', async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    expect(problems.filter(({ severity }) => severity === 'error').map(({ message }) => message)).toEqual([])
    // A broken document has some.
    const broken = await lintFromString({ source: JSON.stringify({ ...document, paths: { '/x': 1 } }), config })
    expect(broken.filter(({ severity }) => severity === 'error')).not.toEqual([])
  })

  it('says 413 and 415 where there is a body', () => {
    const withBody = operations().filter(([, , operation]) => operation.requestBody !== undefined)
    expect(withBody.length).toBeGreaterThan(2)
    for (const [, , operation] of withBody)
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['413', '415']))
  })

  it('gives every operation an id of its own, a tag, a summary and described answers', () => {
    const ids = operations().map(([, , operation]) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const [, , operation] of operations()) {
      expect(operation).toMatchObject({
        operationId: expect.stringMatching(/^[a-z]+([A-Z][a-z]+)*$/),
        summary: expect.stringMatching(/./),
      })
      expect(operation.tags).toHaveLength(1)
      expect(Object.keys(operation.responses).some((status) => /^(2|302)/.test(status))).toBe(true)
      for (const [status, answer] of Object.entries<Json>(operation.responses)) {
        expect(status).toMatch(/^[2-5]\d\d$/)
        expect(answer.description).toMatch(/./)
        if (status >= '400') expect([...refsOf(answer)]).toEqual(['#/components/schemas/ErrorResponse'])
      }
    }
  })

  it('takes an Idempotency-Key wherever something is created', () => {
    const creating = operations()
      .filter(([, method, operation]) => method === 'post' && operation.responses['201'])
      // Registration has no user to whom a key could belong, and an e-mail address registers only once anyway.
      .filter(([path]) => path !== '/v1/auth/register')
    expect(creating.length).toBeGreaterThan(4)
    for (const [path, , operation] of creating) {
      const key = operation.parameters.find(({ name }: Json) => name === 'Idempotency-Key')
      expect({ path, in: key?.in, conflict: '409' in operation.responses }).toEqual({
        path,
        in: 'header',
        conflict: true,
      })
    }
  })

  it('declares exactly the parameters that are in the path', () => {
    for (const [path, , operation] of operations()) {
      const declared = operation.parameters.filter((parameter: Json) => parameter.in === 'path')
      const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      expect(declared.map((parameter: Json) => parameter.name)).toEqual(names)
      for (const parameter of declared) expect(parameter.required).toBe(true)
      for (const parameter of operation.parameters) expect(Object.keys(parameter.schema).length).toBeGreaterThan(0)
    }
  })

  it('has every endpoint of the contract and no other', () => {
    const declared = endpoints.map(({ method, path }) => `${method} ${path.replace('*}', '}')}`).sort()
    expect(
      operations()
        .map(([path, method]) => `${method.toUpperCase()} ${path}`)
        .sort(),
    ).toEqual(declared)
  })
})

describe('the app', () => {
  it.each(endpoints.map(({ method, path }) => [method, path] as const))('routes %s %s', async (method, path) => {
    const filled = path.replace(/\{(\w+?)_?id\}/g, (_, name: string) => unknownId(name || 'model'))
    const answer = await fetch(api.url + filled, {
      method,
      ...(method === 'GET' ? {} : { body: '{}', headers: { 'Content-Type': 'application/json' } }),
    })
    expect(answer.status).not.toBe(405)
    expect(answer.status).toBeLessThan(500)
    // A stream would not end by itself.
    if (answer.ok) await answer.body?.cancel()
    else expect(((await answer.json()) as Json).error).not.toMatch(/There is no route/)
  })
})

describe('the documentation page', () => {
  it('has the guides that the document links to', async () => {
    const links = [...document.info.description.matchAll(/\]\((docs\/[\w-]+\.md)\)/g)].map(([, link]: Json) => link)
    expect(links).toContain(document.externalDocs.url)
    for (const link of links) {
      const guide = await call(api, 'GET', `/${link}`)
      expect([guide.status, guide.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
      expect(guide.body).toMatch(/^# /)
    }
  })

  it('loads everything from the service itself', async () => {
    const page = await call(api, 'GET', '/docs')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const loaded = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map((match: Json) => match[1])
    expect(loaded).toHaveLength(3)
    for (const link of loaded) {
      const target = new URL(link, `${api.url}/docs`)
      expect(target.origin).toBe(api.url)
      const asset = await call(api, 'GET', target.pathname)
      expect([asset.status, asset.body.length > 20]).toEqual([200, true])
      expect(asset.headers.get('content-type')).toMatch(link.endsWith('.css') ? /^text\/css/ : /^text\/javascript/)
    }
    expect((await call(api, 'GET', '/docs/start.js')).body).toContain("'openapi.json'")
  })

  it('has an icon, and cannot be framed', async () => {
    const page = await fetch(`${api.url}/docs`)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    const icon = await fetch(`${api.url}/favicon.ico`)
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
    await Promise.all([page.text(), icon.text()])
  })

  it('finds its assets with a trailing slash and behind /api', async () => {
    for (const path of ['/docs/', '/api/docs', '/api/docs/']) {
      const answer = await fetch(api.url + path)
      expect(answer.url).toBe(api.url + path.replace(/\/$/, ''))
      const asset = await fetch(new URL('docs/swagger-ui.css', answer.url))
      expect([answer.status, asset.status]).toEqual([200, 200])
      await Promise.all([answer.text(), asset.text()])
    }
  })
})
