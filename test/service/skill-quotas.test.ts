import { newUuid } from '../../domain/kit/ids.ts'
import { type Answer, call, expectError } from '../support/http.ts'
import { formOf } from '../support/pictures.ts'
import { startService, type TestService } from '../support/service.ts'
import { skillMd, skillZip } from '../support/zip.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ environment: { SKILLS_MAX_COUNT: '2' }, worker: false })
})
afterAll(() => service.stop())
beforeEach(() => service.platform.deps.db.skill.deleteMany())

const post = (path: string, body: unknown, headers = {}): Promise<Answer> =>
  call(service.url, 'POST', `/v1/skills${path}`, body, headers)
const files = () => service.platform.deps.db.skillFile

describe("an organization's skills", () => {
  it('are limited in number, also when they arrive together, and a repeated request has its answer', async () => {
    const body = { skill_md: skillMd('first') }
    const headers = { 'Idempotency-Key': newUuid() }
    const first = await post('', body, headers)
    const answers = await Promise.all([
      post('', { skill_md: skillMd('a') }),
      post('', { skill_md: skillMd('b') }),
      post('/upload', formOf(skillZip('c'))),
      post('/upload', formOf(skillZip('d'))),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    const sentence = 'The organization has 2 skills, which is the limit; delete one first'
    expectError(await post('', { skill_md: skillMd('e') }), 409, sentence)
    expectError(await post('/upload', formOf(skillZip('e'))), 409, sentence)
    expect(await post('', body, headers)).toMatchObject({ status: 201, body: first.body })
    await call(service.url, 'DELETE', `/v1/skills/${first.body.id}`)
    expect((await post('/upload', formOf(skillZip('e')))).status).toBe(201)
  })

  it('are changed with the time that one is stored with', async () => {
    const { id } = (await post('', { skill_md: skillMd('a') })).body
    const transaction = jest.spyOn(service.platform.deps.db, '$transaction')
    expect((await call(service.url, 'PATCH', `/v1/skills/${id}`, { skill_md: skillMd('b') })).status).toBe(200)
    expect((await post('', { skill_md: skillMd('a') })).status).toBe(201)
    const options = transaction.mock.calls.map(([, options]) => options)
    transaction.mockRestore()
    expect(options).toEqual([{ timeout: 30_000 }, { timeout: 30_000 }])
  })

  it('leave nothing behind, and a changed SKILL.md is another file', async () => {
    const { id: kept } = (await post('', { skill_md: skillMd('kept') })).body
    const { id: left } = (await post('/upload', formOf(skillZip('left')))).body
    await call(service.url, 'DELETE', `/v1/skills/${left}`)
    const before = await files().findMany({ orderBy: { path: 'asc' } })
    expect(before.map(({ path, isDirectory, isBase64 }) => ({ path, isDirectory, isBase64 }))).toEqual([
      { path: '', isDirectory: true, isBase64: false },
      { path: '/SKILL.md', isDirectory: false, isBase64: false },
    ])
    const text = skillMd('renamed', 'Ä')
    expect((await call(service.url, 'PATCH', `/v1/skills/${kept}`, { skill_md: text })).status).toBe(200)
    const after = await files().findMany({ orderBy: { path: 'asc' } })
    expect(after.map(({ id }, at) => id === before[at]?.id)).toEqual([true, false])
    expect(after[1]).toMatchObject({ path: '/SKILL.md', sizeBytes: Buffer.byteLength(text) })
    expect(Buffer.from(after[1]?.bytes ?? []).toString()).toBe(text)
  })
})

describe('an upload', () => {
  it('waits for its turn, and is refused when too many are unpacked', async () => {
    const { deps } = service.platform
    const enter = jest.spyOn(deps.archiveSlots, 'enter').mockResolvedValueOnce(false)
    const refused = await post('/upload', formOf(skillZip('a')))
    expectError(refused, 429, 'Too many archives are being unpacked; try again')
    expect(refused.headers.get('retry-after')).toBe('5')
    enter.mockRestore()
  })
})
