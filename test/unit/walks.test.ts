import { z } from 'zod'
import { endpoints } from '../../contract/index.ts'
import type { Endpoint } from '../../contract/kit/endpoint.ts'
import { readConfig } from '../../platform/config.ts'
import type { Ids } from '../support/belongings.ts'
import { plan, requests } from '../support/requests.ts'
import {
  expectEachFieldFound,
  expectEachSecretSet,
  madeUpSecrets,
  secretFields,
  secretsOf,
  secretVariables,
} from '../support/secrets.ts'
import { expectNone, expectSome } from '../support/tables.ts'
import { expectTablesKnown, expectViewOfEach, tables, views } from '../support/views.ts'

/** Tables of the record according to views.ts. */
const known = Object.keys(tables).map((name) => ({ name, columns: ['organization_id'] }))

describe('the tables to which a new resource must be added', () => {
  it('include a view for every operation that reads', () => {
    expectViewOfEach(views)
    const { 'GET /v1/agents': _, ...others } = views
    expect(() => expectViewOfEach(others)).toThrow(/^test\/support\/views.ts has no entry for "GET \/v1\/agents": add /)
    expect(() => expectViewOfEach({ ...views, 'GET /v1/notes': 'gone' })).toThrow(/"GET \/v1\/notes".*remove it/)
  })

  it('include a value for every parameter of a path', () => {
    const ids = {} as Ids
    requests['GET /v1/plants/{plant_id}'] = () => [{}]
    expect(() => plan('GET /v1/plants/{plant_id}', ids, ids)).toThrow(
      /^test\/support\/requests.ts has no value for \{plant_id\} of "GET \/v1\/plants\/\{plant_id\}": add it to /,
    )
    delete requests['GET /v1/plants/{plant_id}']
  })

  it('include the tables of an organization or a session', () => {
    expectTablesKnown(known)
    const plants = { name: 'plants', columns: ['organization_id', 'session_id'] }
    expect(() => expectTablesKnown([...known, plants])).toThrow(
      /^The table plants has a organization_id and a session_id, and test\/support\/views.ts does not know it: add /,
    )
    expect(() => expectTablesKnown(known.slice(1))).toThrow(/has the table members, which does not exist: remove it/)
    expect(() => expectTablesKnown(known, { ...tables, members: 'GET /v1/durable/sse' })).toThrow(
      /members is shown by "GET \/v1\/durable\/sse", which is not a view/,
    )
  })

  it('include the rows that a test creates and later expects to be gone', () => {
    expectSome({ notes: 1 }, () => 'none')
    expect(() => expectSome({ notes: 0, turns: 1 }, (table) => `${table} is empty`)).toThrow(/^notes is empty$/)
    expectNone({ notes: 0 }, () => 'some')
    expect(() => expectNone({ notes: 2, turns: 0 }, (table, count) => `${table} has ${count}`)).toThrow(/^notes has 2$/)
  })

  it('include the secrets of the configuration', () => {
    expect(secretVariables(['PORT', 'NOTES_API_KEY', 'A_SECRET', 'A_PASSWORD', 'DATABASE_URL', 'LOCAL_KEY'])).toEqual([
      'NOTES_API_KEY',
      'A_SECRET',
      'A_PASSWORD',
      'DATABASE_URL',
      'LOCAL_KEY',
    ])
    // A flag with a name like a secret's.
    expect(secretVariables()).not.toContain('AUTH_DISABLE_PASSWORD')
    expect(secretVariables()).toEqual(
      expect.arrayContaining(['AUTH_JWT_SECRET', 'SECRETS_ENCRYPTION_KEY', 'SECRETS_ENCRYPTION_KEY_PREVIOUS']),
    )
    expect(() =>
      expectEachSecretSet({ SECRETS_ENCRYPTION_KEY_PREVIOUS: [] }, 'a', ['SECRETS_ENCRYPTION_KEY_PREVIOUS']),
    ).toThrow(/^SECRETS_/)
    expect(secretsOf(readConfig(madeUpSecrets())).length).toBe(secretVariables().length)
    expect(() => expectEachSecretSet({}, 'a.test.ts', ['NOTES_API_KEY'])).toThrow(
      /^NOTES_API_KEY is a secret by its name and a.test.ts does not look for it: give its service a value, or /,
    )
  })

  it('include the secrets in requests', () => {
    const fields = secretFields(endpoints).map(({ operation, field }) => `${operation}: ${field}`)
    expect(fields).toContain('POST /v1/auth/login: password')
    expect(fields).toContain('POST /v1/auth/refresh: refresh_token')
    const body = z.object({ server: z.array(z.object({ api_key: z.string(), max_tokens: z.number() })) })
    const planted = { method: 'POST', path: '/v1/notes', body } as Pick<
      Endpoint,
      'method' | 'path' | 'body'
    > as Endpoint
    expect(secretFields([planted])).toEqual([{ operation: 'POST /v1/notes', field: 'api_key' }])
    expect(() => expectEachFieldFound(secretFields([planted]), () => false)).toThrow(
      /^"api_key" of POST \/v1\/notes is a secret by its name and logs are not searched for it: add it to /,
    )
  })
})
