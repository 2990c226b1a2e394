import pg from 'pg'
import { FULL_MODE, fromSomewhere, logInUser, newPassword, registerUser } from '../support/auth.ts'
import { createOwner, type Owner } from '../support/belongings.ts'
import { isSoak } from '../support/counts.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { type Interference, type Proxy as ServerProxy, startProxy } from '../support/proxy.ts'
import { type Planned, plan } from '../support/requests.ts'
import { startService, type TestService } from '../support/service.ts'
import { operations, type Received, send } from '../support/walk.ts'

let database: TestDatabase
let proxy: ServerProxy
let service: TestService
let admin: pg.Client
const owners: Owner[] = []
beforeAll(async () => {
  database = await cloneDatabase()
  admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  const url = new URL(database.url)
  proxy = await startProxy(url.host)
  url.host = proxy.address
  service = await startService({ worker: false, environment: { ...FULL_MODE, DATABASE_URL: url.href } })
  const worker = await service.startWorker()
  for (let each = 0; each < 5; each++) owners.push(await createOwner(service.url))
  // A worker would use connections of its own accord.
  await worker.stop()
})
afterAll(async () => {
  await service.stop()
  await proxy.close()
  await admin.end()
  await database.drop()
})

type Headers = Record<string, string>
type Write = { operation: string; sent: Planned }

const isWrite = (operation: string): boolean => !operation.startsWith('GET ')

/** Requests that end what others need come last. */
const rankOf = (operation: string): number =>
  [/^(?!DELETE)(?!.*cancel$)/, /cancel$/, /^DELETE/].findIndex((rank) => rank.test(operation))

/** Operations that would end the walk, because nothing is left to write to, and a request that another server answers. */
const LEFT_OUT = ['DELETE /v1/orgs/{org}', 'DELETE /v1/users/me', 'POST /v1/mcp-servers/{server_id}/prompts/get']

/** Returns valid requests of all other operations that write, one for each. */
async function writesOf(owner: Owner): Promise<Write[]> {
  const walked = operations
    .filter(
      (operation) => isWrite(operation) && !operation.startsWith('POST /v1/auth/') && !LEFT_OUT.includes(operation),
    )
    .sort((a, b) => rankOf(a) - rankOf(b))
    .flatMap((operation) =>
      plan(operation, owner.ids, owner.ids)
        .slice(-1)
        .map((sent) => ({ operation, sent })),
    )
  const { email, password, refreshToken } = await registerUser(service.url)
  const post = (name: string, body?: unknown, headers: Headers = {}): Write => {
    const path = `/v1/auth/${name}`
    return { operation: `POST ${path}`, sent: { method: 'POST', path, body, headers } }
  }
  const { headers } = await logInUser(service.url, { email, password })
  return [
    ...walked,
    post('register', { email: `new-${email}`, password: newPassword(), name: 'A user' }),
    post('login', { email, password }),
    post('refresh', { refresh_token: refreshToken }),
    post('api-keys', { name: 'A key' }, owner.headers),
    post('logout', undefined, headers),
  ]
}

const ask = ({ sent }: Write, headers: Headers): Promise<Received> =>
  send(service.url, { ...sent, headers: { ...fromSomewhere(), ...headers, ...sent.headers } })

const outcomeOf = ({ operation, sent }: Write, { status, body }: Received, where: unknown) =>
  `${operation} (${sent.path}) at ${where}: ${status} ${body}`

/** Describes each answer that is neither a 503 with Retry-After nor what the operation answers otherwise. */
const wrongAnswers = (answers: [Write, Received, unknown][]): string[] =>
  answers
    .filter(([, { status, headers }]) => (status === 503 ? !headers['retry-after'] : status >= 500))
    .map(([write, answer, where]) => outcomeOf(write, answer, where))

const MAX_CHUNKS = 60

/** Repeats a request with a break at each of its statements in turn, until it meets none. Returns all answers. */
async function breakEverywhere(
  write: Write,
  headers: Headers,
  how: Interference,
): Promise<[Write, Received, number][]> {
  const answers: [Write, Received, number][] = []
  for (let nth = 1; nth <= MAX_CHUNKS; nth++) {
    let hasBroken = false
    proxy.interfere(nth, (own) => {
      hasBroken = true
      return how(own)
    })
    const answer = await ask(write, headers)
    answers.push([write, answer, nth])
    proxy.interfere(0, () => true)
    // The break of the request before may have been noticed only by this one.
    if (!hasBroken && answer.status !== 503) return answers
  }
  throw new Error(`${write.operation} sends more than ${MAX_CHUNKS} chunks`)
}

const FIELDS = ['SFATAL', 'VFATAL', 'C57P01', 'Mterminating connection due to administrator command', '']
const BODY = Buffer.from(FIELDS.map((field) => `${field}\0`).join(''))
/** Postgres's message ErrorResponse, which it sends when it ends a connection. */
const SHUT_DOWN = Buffer.concat([
  Buffer.from('E'),
  Buffer.from(new Uint32Array([BODY.length + 4]).buffer).swap32(),
  BODY,
])

const WAYS: [string, Interference][] = [
  [
    'breaks before each statement',
    ({ hangUp }) => {
      hangUp()
      return false
    },
  ],
  [
    'is ended by Postgres together with the result of each statement',
    ({ hangUpAfterAnswer }) => {
      hangUpAfterAnswer(SHUT_DOWN)
      return true
    },
  ],
  [
    'is ended by Postgres before each statement',
    async ({ port }) => {
      await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_port = $1', [port])
      return true
    },
  ],
]

/** In every run the way that was once answered 500; the others as well in a soak run. */
const PLAYED = isSoak ? WAYS : WAYS.slice(1, 2)

describe('every operation that writes, when the connection to Postgres', () => {
  it.each(PLAYED)('%s, answers 503 and works afterwards', async (_, how) => {
    const owner = owners.pop() as Owner
    const answers: [Write, Received, number][] = []
    for (const write of await writesOf(owner)) answers.push(...(await breakEverywhere(write, owner.headers, how)))
    expect(wrongAnswers(answers)).toEqual([])
    const last = new Map(answers.map(([{ operation }, { status }]) => [operation, status]))
    const unserved = [...last].filter(([, status]) => status >= 500)
    expect(unserved).toEqual([])
  })

  it('is cut or silent, answers 503 in seconds and works afterwards', async () => {
    for (const interrupt of [proxy.cut, proxy.freeze]) {
      const owner = owners.pop() as Owner
      const writes = await writesOf(owner)
      interrupt()
      const asking = writes.map(async (write) => [write, await ask(write, owner.headers), interrupt.name] as const)
      const answers = await Promise.all(asking)
      proxy.mend()
      expect(wrongAnswers(answers.map(([...answer]) => answer))).toEqual([])
      for (const write of writes) expect((await ask(write, owner.headers)).status).toBeLessThan(500)
    }
  })
})
