import type { Deps } from '../../../domain/deps.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { readHeaders } from '../../../domain/schedules/targets/headers.ts'
import { targetColumns } from '../../../domain/schedules/targets/target-columns.ts'
import { keyFromText } from '../../../platform/secrets/encryption-key.ts'
import { createSecrets } from '../../../platform/secrets/secrets.ts'
import type { Schedule } from '../../../prisma/generated/client.ts'

const secrets = createSecrets({ current: keyFromText('5ec7e7'.repeat(11).slice(0, 64)), previous: [] })
// Nothing else is used.
const deps = { secrets } as Deps
const id = newUuid()

const columnsOf = (headers: Record<string, string>, before?: Schedule, url = 'https://hooks.example/a') =>
  targetColumns(deps, id, { type: 'activity', name: 'http_request', input: { url }, headers, sessionId: null }, before)
/** Returns a schedule with nothing but its id and target. */
const scheduleWith = (headers: Record<string, string>) => ({ id, ...columnsOf(headers) }) as unknown as Schedule

describe("a request's headers", () => {
  it.each<[given: Record<string, string>, merged: Record<string, string>]>([
    [
      { 'X-A': '***', 'X-B': '***' },
      { 'X-A': 'one', 'X-B': 'two' },
    ],
    [
      { 'x-b': '***', 'X-C': 'new' },
      { 'x-b': 'two', 'X-C': 'new' },
    ],
    [{ 'X-A': 'new' }, { 'X-A': 'new' }],
    [{}, {}],
  ])('are %j, where a mask is the stored value', (given, merged) => {
    const { targetHeaders } = columnsOf(given, scheduleWith({ 'X-A': 'one', 'X-B': 'two' }))
    expect(readHeaders(deps, { id, targetHeaders })).toEqual(merged)
  })

  it("of another server are not kept, and another schedule's cannot be read", () => {
    const before = scheduleWith({ 'X-A': 'one' })
    expect(() => columnsOf({ 'X-A': '***' }, before, 'https://other.example/a')).toThrow(
      /is required with another server/,
    )
    expect(() => readHeaders(deps, { ...before, id: newUuid() })).toThrow()
  })
})
