import { FULL_MODE, fromSomewhere, registerUser } from '../support/auth.ts'
import { call } from '../support/http.ts'
import { withService } from '../support/service.ts'

const PAIRS = 40

/** Milliseconds that a failing login takes. */
async function timeOf(url: string, email: string): Promise<number> {
  const headers = fromSomewhere()
  const begun = performance.now()
  const { status } = await call(url, 'POST', '/v1/auth/login', { email, password: 'not the password' }, headers)
  expect(status).toBe(401)
  return performance.now() - begun
}

/** The lower quartile: what else the machine does only ever adds. */
const typical = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length / 4)] ?? 0

it('takes a login that fails as long for nobody as for somebody', async () => {
  await withService({ worker: false, environment: FULL_MODE }, async ({ url }) => {
    const { email } = await registerUser(url)
    const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] }
    for (let pair = 0; pair < PAIRS; pair++) {
      times.unknown.push(await timeOf(url, `nobody-${pair}@example.com`))
      times.known.push(await timeOf(url, email))
    }
    const ratio = typical(times.unknown) / typical(times.known)
    expect(ratio).toBeGreaterThan(0.8)
    expect(ratio).toBeLessThan(1.25)
  })
})
