import { FULL_MODE, fromSomewhere, registerUser } from '../support/auth.ts'
import { call } from '../support/http.ts'
import { withService } from '../support/service.ts'

const PAIRS = 40
const ROUNDS = 3

/** Measures a failing login in milliseconds. */
async function timeOf(url: string, email: string): Promise<number> {
  const headers = fromSomewhere()
  const begun = performance.now()
  const { status } = await call(url, 'POST', '/v1/auth/login', { email, password: 'not the password' }, headers)
  expect(status).toBe(401)
  return performance.now() - begun
}

/** Returns the lower quartile, because other load on the machine only adds time. */
const typical = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length / 4)] ?? 0

/** Returns how much longer a login takes for an unknown user than for a known one, as a ratio. */
async function measureRatio(url: string, email: string): Promise<number> {
  const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] }
  for (let pair = 0; pair < PAIRS; pair++) {
    times.unknown.push(await timeOf(url, `nobody-${pair}@example.com`))
    times.known.push(await timeOf(url, email))
  }
  return typical(times.unknown) / typical(times.known)
}

const isAlike = (ratio: number): boolean => ratio >= 0.8 && ratio <= 1.25

// A busy machine may spoil a round, so one good round of three is enough. A real leak shows in every round.
it('a failing login takes as long for an unknown user as for a known one', async () => {
  await withService({ worker: false, environment: FULL_MODE }, async ({ url }) => {
    const { email } = await registerUser(url)
    const ratios: number[] = []
    while (ratios.length < ROUNDS && !ratios.some(isAlike)) ratios.push(await measureRatio(url, email))
    expect(ratios.filter(isAlike)).toEqual([ratios.at(-1)])
  })
})
