import { FULL_MODE, fromSomewhere } from '../support/auth.ts'
import { createOwner, type Ids, type Owner, unknownIds } from '../support/belongings.ts'
import { call, createSession, type Json, modelId } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { expectNothingOf, namesIn, withoutEcho } from '../support/isolation.ts'
import { type Planned, plan, requests } from '../support/requests.ts'
import { startService, type TestService } from '../support/service.ts'
import { countOfOrganization, expectSome, ORGANIZATION_COLUMNS, tablesWith } from '../support/tables.ts'
import { expectTablesKnown, expectViewOfEach, viewOf, views } from '../support/views.ts'
import { endpointOf, expectEntryForEach, operations, type Received, send } from '../support/walk.ts'

let service: TestService
let victim: Owner
let before: Json
beforeAll(async () => {
  service = await startService({ environment: FULL_MODE })
  victim = await createOwner(service.url)
  before = await viewOf(service.url, victim)
})
afterAll(() => service.stop())
afterEach(async () => {
  // None of the requests has changed anything that the victim has.
  expect(await viewOf(service.url, victim)).toEqual(before)
})

/** Operations left out, because they end the login that the walk needs. */
const LEFT_OUT = ['POST /v1/auth/logout', 'DELETE /v1/users/me']
const walked = operations.filter((operation) => !LEFT_OUT.includes(operation))

type Headers = Record<string, string>
/** Request with the victim's ids, and the same request with ids that nothing has. */
type Pair = { operation: string; sent: [Planned, Planned] }

/**
 * Returns the pairs of all operations. Requests that create something come last, because what they create may
 * afterwards be found under the victim's ids.
 */
function pairsFor(own: Ids, [theirs, nobodys]: [Ids, Ids]): Pair[] {
  const pairs = walked.flatMap((operation) => {
    const those = plan(operation, own, nobodys)
    return plan(operation, own, theirs).map((sent, index): Pair => ({ operation, sent: [sent, those[index] ?? sent] }))
  })
  return [...pairs.filter(({ sent }) => !sent[0].creates), ...pairs.filter(({ sent }) => sent[0].creates)]
}

const ask = (sent: Planned, headers: Headers): Promise<Received> =>
  send(service.url, { ...sent, headers: { ...fromSomewhere(), ...headers, ...sent.headers } })

/**
 * Expects equal answers to both requests, to the byte unless they create something, and nothing of the victim's in
 * them. Returns the first answer.
 */
async function compare({ operation, sent }: Pair, [theirs, nobodys]: [Ids, Ids], headers: [Headers, Headers]) {
  const answer = withoutEcho(await ask(sent[0], headers[0]), sent[0], theirs)
  const other = withoutEcho(await ask(sent[1], headers[1]), sent[1], nobodys)
  const seen = (received: Received) => (sent[0].creates ? { status: received.status } : received)
  expect({ operation, sent: sent[0], ...seen(answer) }).toEqual({ operation, sent: sent[0], ...seen(other) })
  expectNothingOf(theirs, answer)
  return answer
}

const isPublic = (operation: string): boolean => endpointOf(operation).access === 'public'

/** Sends each of the victim's ids in every place that takes one. Returns the number of requests with such ids. */
async function walk(own: Ids, theirs: Ids, headers: Headers): Promise<number> {
  const ids: [Ids, Ids] = [theirs, unknownIds()]
  let named = 0
  for (const pair of pairsFor(own, ids)) {
    const { status } = await compare(pair, ids, [headers, headers])
    const { operation, sent } = pair
    const isExpected = sent[0].succeeds ? status < 500 : status >= 400 && status < 500
    const isKnown = isPublic(operation) || status !== 401
    expect({ operation, sent: sent[0], status, isExpected, isKnown }).toMatchObject({ isExpected: true, isKnown: true })
    if (namesIn(sent[0], theirs).length > 0) named++
  }
  return named
}

const report = (how: string, named: number) =>
  void process.stdout.write(
    `isolation, ${how}: ${walked.length} operations, ${named} with ids of another organization\n`,
  )

describe('the data of another organization', () => {
  it('is named in the requests of every operation', () => {
    const what = 'what can be sent to it, with every id that it takes in path, query, body or headers'
    expectEntryForEach(requests, 'test/support/requests.ts', what)
  })

  it('can be read completely by its owner, so that a change is noticed', () => {
    expectViewOfEach(views)
  })

  it('is in tables that the walk knows, with rows in each', async () => {
    const { db } = service.platform.deps
    const found = await tablesWith(db, ORGANIZATION_COLUMNS)
    expectTablesKnown(found)
    const counts = await countOfOrganization(db, found, toUuid(victim.ids.organization))
    expectSome(
      counts,
      (table) => `createOwner in test/support/belongings.ts makes no row in ${table}: let it make one.`,
    )
  })

  it('looks to a user as if it did not exist', async () => {
    const { ids, headers } = await createOwner(service.url)
    const named = await walk(ids, victim.ids, headers)
    expect(named).toBeGreaterThan(40)
    report('by login', named)
  })

  it('looks to a model as if it did not exist when a message names it', async () => {
    const { ids, headers } = await createOwner(service.url)
    const default_model_id = await modelId(service.url, 'llmsim-echo', headers)
    const session = await createSession(service.url, { default_model_id }, {}, headers)
    const seen = async (image: string): Promise<string> => {
      const message = { content: [{ type: 'image_file', image_id: image }] }
      const path = `/v1/sessions/${session}/messages?wait=60`
      const { body } = await call(service.url, 'POST', path, { message }, headers)
      return body.output.content[0].text.replaceAll(image, '<id>')
    }
    expect(await seen(ids.image)).toBe('[image image/png 1x1]')
    expect(await seen(victim.ids.image)).toBe('[image not found: <id>]')
    expect(await seen(unknownIds().image)).toBe('[image not found: <id>]')
  })

  it('looks to an API key as if it did not exist', async () => {
    const { ids, keyHeaders } = await createOwner(service.url)
    report('by API key', await walk(ids, victim.ids, keyHeaders))
  })

  it('looks as if it did not exist when it is a deleted session', async () => {
    const { ids, headers } = await createOwner(service.url)
    const { deletedSession } = victim.ids
    const unused = unknownIds().deletedSession
    // Each id has one name, by which answers are compared.
    const theirs = { ...victim.ids, session: deletedSession, waitingSession: deletedSession, deletedSession: unused }
    report('a deleted session', await walk(ids, theirs, headers))
  })
})

describe('the walk', () => {
  it('fails for data that its caller can see', async () => {
    const { ids, headers } = await createOwner(service.url)
    await expect(walk(unknownIds(), ids, headers)).rejects.toThrow()
  })
})

describe('a request for another organization', () => {
  const ways: [how: string, headers: (id: string) => Headers][] = [
    ['the header X-Org-Id', (id) => ({ 'X-Org-Id': id })],
    ['the cookie org_id', (id) => ({ Cookie: `org_id=${id}` })],
  ]

  /** Returns one request for each operation. */
  const pairs = (own: Ids): Pair[] =>
    walked.flatMap((operation) => {
      const [sent] = plan(operation, own, unknownIds())
      return sent === undefined ? [] : [{ operation, sent: [sent, sent] }]
    })

  it.each(ways)('is answered as if it did not exist: %s', async (how, headersFor) => {
    const { ids, token } = await createOwner(service.url)
    const nobodys = unknownIds()
    const headers = [victim.ids, nobodys].map(({ organization }) => ({ ...token, ...headersFor(organization) }))
    let refused = 0
    for (const pair of pairs(ids)) {
      const { status, body } = await compare(pair, [victim.ids, nobodys], [headers[0] ?? {}, headers[1] ?? {}])
      if (['public', 'user'].includes(endpointOf(pair.operation).access)) continue
      const { operation } = pair
      expect({ operation, status, body }).toEqual({
        operation,
        status: 404,
        body: '{"error":"Organization not found","code":"not_found"}',
      })
      refused++
    }
    expect(refused).toBeGreaterThan(30)
    report(`${how}`, refused)
  })

  it.each(ways)('does not matter to an API key, which has its own: %s', async (how, headersFor) => {
    const { ids, keyHeaders } = await createOwner(service.url)
    const headers = { ...keyHeaders, ...headersFor(victim.ids.organization) }
    report(`API key and ${how}`, await walk(ids, victim.ids, headers))
  })
})
