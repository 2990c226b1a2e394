import { createHash } from 'node:crypto'
import { newUuid } from '../../domain/kit/ids.ts'
import { type Answer, call, expectError, type Json, unknownId } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { formOf } from '../support/pictures.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { skillMd, type ZipEntry, zipOf } from '../support/zip.ts'

let api: Organization
let other: Organization
beforeAll(async () => {
  api = await newOrganization()
  other = await newOrganization()
})

const MIB = 1024 * 1024
const create = (text: string, of = api): Promise<Answer> => call(of, 'POST', '/v1/skills', { skill_md: text })
const upload = (entries: ZipEntry[], headers = {}): Promise<Answer> =>
  call(api, 'POST', '/v1/skills/upload', formOf(zipOf(entries), 'skill.zip', 'application/zip'), headers)
const entry = (name: string): ZipEntry => ({ name, data: name })
const replace = (path: string, entries: ZipEntry[]): Promise<Answer> =>
  call(api, 'PUT', `${path}/content`, formOf(zipOf(entries), 'skill.zip', 'application/zip'))
const get = (path: string, of = api): Promise<Answer> => call(of, 'GET', `/v1/skills/${path}`)
/** Returns a name that no other test uses. */
const newName = () => `skill-${newUuid()}`
const idOf = ({ status, body }: Answer): string => {
  expect(status).toBe(201)
  return body.id
}

describe('a skill', () => {
  it('is created from the text of a SKILL.md, and has its fields', async () => {
    const name = newName()
    const text = `\ufeff---\r\nname: ${name}\r\ndescription: Fills in forms\r\nlicense: MIT\r\ncompatibility: Needs python3\r
metadata: {author: Ada, version: "2.0"}\r\nallowed-tools: [read_file, bash]\r\n---\r\nDo it.\r\n`
    const { status, body } = await create(text)
    expect({ status, body }).toEqual({
      status: 201,
      body: {
        id: expect.stringMatching(/^skill_[0-9a-f]{32}$/),
        ref: `skill:${toUuid(body.id)}`,
        name,
        description: 'Fills in forms',
        source_type: 'markdown',
        status: 'active',
        version: '2.0',
        license: 'MIT',
        compatibility: 'Needs python3',
        metadata: { author: 'Ada', version: '2.0' },
        allowed_tools: 'read_file bash',
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    })
    expect((await get(body.id)).body).toEqual(body)
    expect((await get(`${body.id}/content`)).body).toEqual({ skill_md: text, files: [] })
  })

  it('is uploaded as an archive, with its files', async () => {
    const name = newName()
    const text = skillMd(name)
    const binary = Buffer.from([0, 1, 2, 255])
    const answer = await upload([
      { name: 'folder/SKILL.md', data: text },
      { name: 'folder/docs/größe.md', data: '\ufeffA\r\n"b"' },
      { name: 'folder/picture.bin', data: binary },
      { name: 'folder/empty.txt' },
      { name: 'folder/nothing/' },
    ])
    expect(answer).toMatchObject({ status: 201, body: { name, source_type: 'archive', version: '1.0' } })
    expect((await get(`${answer.body.id}/content`)).body).toEqual({
      skill_md: text,
      files: [
        { path: 'docs/größe.md', content: '\ufeffA\r\n"b"' },
        { path: 'empty.txt', content: '' },
        { path: 'picture.bin', content: binary.toString('base64'), encoding: 'base64' },
      ],
    })
  })

  it('may have 10 MiB of files, which all come back', async () => {
    const files = Array.from({ length: 9 }, (_, at) => ({ name: `${at}`, data: Buffer.alloc(MIB, `${at} ä`) }))
    const id = idOf(await upload([{ name: 'SKILL.md', data: skillMd(newName()) }, ...files]))
    const { body } = await get(`${id}/content`)
    const digestOf = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex')
    expect(body.files.map(({ path, content }: Json) => [path, digestOf(content)])).toEqual(
      files.map(({ name, data }) => [name, digestOf(data.toString())]),
    )
  })

  it('is refused with all problems of its text', async () => {
    const text = '---\nname: Not A Name\nlicense: [MIT]\n---\nDo it.'
    const sentence =
      'license: must be a text; name: must be of a-z, 0-9 and single hyphens, which are not at its beginning or end; description: is required'
    expectError(await create(text), 422, sentence)
    expectError(await upload([{ name: 'SKILL.md', data: text }]), 422, sentence)
  })

  it.each<[string, () => Promise<Answer>, number, RegExp]>([
    ['no text', () => call(api, 'POST', '/v1/skills', {}), 400, /^skill_md: /],
    ['a number', () => call(api, 'POST', '/v1/skills', { skill_md: 1 }), 400, /^skill_md: /],
    ['NUL in its text', () => create('a\0'), 400, /skill_md/],
    ['too long a body', () => create(skillMd('a', 'x'.repeat(100 * 1024))), 422, /^body: must be at most 102400 bytes/],
    ['a body of 2 MiB', () => create('x'.repeat(2 * MIB)), 413, /./],
    ['an archive without SKILL.md', () => upload([{ name: 'a', data: 'a' }]), 422, /^file: must have a file SKILL\.md/],
    [
      'an entry with .. in its path',
      () => upload([{ name: 'SKILL.md', data: skillMd('a') }, { name: '../a' }]),
      422,
      /^file: "\.\.\/a" has a \. or \.\. in its path$/,
    ],
    [
      'a SKILL.md that is not text',
      () => upload([{ name: 'SKILL.md', data: Buffer.from([0xff, 0xfe]) }]),
      422,
      /^file: SKILL\.md must be text in UTF-8/,
    ],
    [
      'NUL in the SKILL.md of an archive',
      () => upload([{ name: 'SKILL.md', data: skillMd('a', `${'x'.repeat(9000)}\0`) }]),
      422,
      /^body: must not contain NUL$/,
    ],
    [
      'a file that is not an archive',
      () => call(api, 'POST', '/v1/skills/upload', formOf(Buffer.from('Hello'))),
      422,
      /^file: is/,
    ],
    ['an empty archive', () => call(api, 'POST', '/v1/skills/upload', formOf(Buffer.alloc(0))), 422, /^file: is not a/],
    [
      'an archive of more than 10 MiB',
      () => call(api, 'POST', '/v1/skills/upload', formOf(Buffer.alloc(10 * MIB + 1))),
      413,
      /^file: must be at most 10485760 bytes$/,
    ],
    ['an archive as JSON', () => call(api, 'POST', '/v1/skills/upload', {}), 415, /multipart/],
  ])('with %s is refused', async (_, send, status, sentence) => {
    expectError(await send(), status, sentence)
  })

  it('has a name that no other skill of the organization has', async () => {
    const name = newName()
    const id = idOf(await create(skillMd(name)))
    expectError(await create(skillMd(name)), 409, `name: the organization already has a skill ${name}`)
    expectError(await upload([{ name: 'SKILL.md', data: skillMd(name) }]), 409, name)
    const another = idOf(await create(skillMd(newName())))
    expectError(await call(api, 'PATCH', `/v1/skills/${another}`, { skill_md: skillMd(name) }), 409, name)
    expect((await create(skillMd(name), other)).status).toBe(201)
    expect((await call(api, 'PATCH', `/v1/skills/${id}`, { skill_md: skillMd(name) })).status).toBe(200)
  })

  it('has it also if many are created at once', async () => {
    const name = newName()
    const answers = await Promise.all(Array.from({ length: 8 }, () => create(skillMd(name))))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
  })

  it('is changed by another SKILL.md, and keeps its other files', async () => {
    const [name, renamed] = [newName(), newName()]
    const old = skillMd(name, 'Do it.', 'license: MIT\nmetadata: {version: "3"}\n')
    const created = await upload([
      { name: 'SKILL.md', data: old },
      { name: 'a.txt', data: 'a' },
    ])
    const path = `/v1/skills/${idOf(created)}`
    const text = skillMd(renamed, 'Do that.')
    const changed = await call(api, 'PATCH', path, { skill_md: text })
    expect(changed).toMatchObject({
      status: 200,
      body: {
        ...created.body,
        name: renamed,
        description: `Does ${renamed}`,
        version: '1.0',
        license: null,
        metadata: {},
        updated_at: expect.any(String),
      },
    })
    expect((await call(api, 'GET', `${path}/content`)).body).toEqual({
      skill_md: text,
      files: [{ path: 'a.txt', content: 'a' }],
    })
    expectError(
      await call(api, 'PATCH', path, { skill_md: 'No.', status: 'disabled' }),
      422,
      /^front matter: is missing/,
    )
    expect((await call(api, 'GET', path)).body).toEqual(changed.body)
    expect((await create(skillMd(name))).status).toBe(201)
  })

  it('is given another text and other files by an archive, under its id', async () => {
    const [name, renamed, taken] = [newName(), newName(), newName()]
    await create(skillMd(taken))
    const created = await create(skillMd(name))
    const path = `/v1/skills/${idOf(created)}`
    const first = await replace(path, [{ name: 'SKILL.md', data: skillMd(renamed) }, ...['a.txt', 'b.txt'].map(entry)])
    const { body } = created
    const changes = { name: renamed, description: `Does ${renamed}`, source_type: 'archive' }
    expect(first).toMatchObject({
      status: 200,
      body: { ...body, ...changes, updated_at: expect.any(String) },
    })
    const second = await replace(path, [{ name: 'SKILL.md', data: skillMd(renamed, 'New.') }, entry('b.txt')])
    const content = { skill_md: skillMd(renamed, 'New.'), files: [{ path: 'b.txt', content: 'b.txt' }] }
    expect((await call(api, 'GET', `${path}/content`)).body).toEqual(content)
    expectError(await replace(path, [{ name: 'SKILL.md', data: skillMd(taken) }]), 409, taken)
    expectError(await replace(path, [entry('b.txt')]), 422, /^file: must have a file SKILL\.md/)
    expectError(await replace(path, [{ name: 'SKILL.md', data: 'No.' }]), 422, /^front matter: is missing/)
    expect([(await call(api, 'GET', path)).body, (await call(api, 'GET', `${path}/content`)).body]).toEqual([
      second.body,
      content,
    ])
    expectError(await replace(`/v1/skills/${unknownId('skill')}`, [entry('a')]), 404, 'Skill not found')
  })

  it('is disabled and enabled, and stays in the list', async () => {
    const { body } = await create(skillMd(newName()))
    const path = `/v1/skills/${body.id}`
    const disabled = await call(api, 'PATCH', path, { status: 'disabled', skill_md: null })
    expect(disabled).toMatchObject({ status: 200, body: { id: body.id, name: body.name, status: 'disabled' } })
    expect((await call(api, 'GET', '/v1/skills')).body.data).toContainEqual(disabled.body)
    expect((await call(api, 'PATCH', path, { status: 'active' })).body.status).toBe('active')
    expectError(await call(api, 'PATCH', path, { status: 'deleted' }), 400, /^status: /)
    const unchanged = await call(api, 'PATCH', path, { status: null })
    expect(unchanged.body).toEqual((await call(api, 'GET', path)).body)
  })

  it('is deleted, and its name is free again', async () => {
    const name = newName()
    const id = idOf(await create(skillMd(name)))
    expect((await call(api, 'DELETE', `/v1/skills/${id}`)).status).toBe(204)
    for (const path of [id, `${id}/content`]) expectError(await get(path), 404, 'Skill not found')
    expectError(await call(api, 'DELETE', `/v1/skills/${id}`), 404, 'Skill not found')
    expect((await create(skillMd(name))).status).toBe(201)
  })

  it('is named by an agent by its UUID', async () => {
    const id = idOf(await create(skillMd(newName())))
    const ref = `skill:${id.replace(/^skill_(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}`
    const agent = { name: 'Ada', system_prompt: 'Help.', capabilities: [{ ref }] }
    expect(await call(api, 'POST', '/v1/agents', agent)).toMatchObject({
      status: 201,
      body: { capabilities: [{ ref }] },
    })
    const [theirs, nobodys] = await Promise.all(
      [ref, `skill:${newUuid()}`].map((one) =>
        call(other, 'POST', '/v1/agents', { ...agent, capabilities: [{ ref: one }] }),
      ),
    )
    expectError(theirs as Answer, 400, ref)
    expect(theirs?.body.error.replace(ref, '')).toBe(nobodys?.body.error.replace(/skill:[0-9a-f-]{36}/, ''))
  })

  it('is not found in another organization', async () => {
    const id = idOf(await create(skillMd(newName())))
    for (const theirs of [id, unknownId('skill')]) {
      for (const path of [theirs, `${theirs}/content`]) expectError(await get(path, other), 404, 'Skill not found')
      expectError(await call(other, 'PATCH', `/v1/skills/${theirs}`, { skill_md: 'x' }), 404, 'Skill not found')
      expectError(await call(other, 'DELETE', `/v1/skills/${theirs}`), 404, 'Skill not found')
    }
    expect((await get(id)).status).toBe(200)
  })
})

describe('the list of skills', () => {
  it('has all of the organization, newest first', async () => {
    const own = await newOrganization()
    const ids: string[] = []
    for (let at = 0; at < 20; at++) ids.unshift(idOf(await create(skillMd(`a-${at}`), own)))
    const { body } = await call(own, 'GET', '/v1/skills')
    expect(body.data.map(({ id }: Json) => id)).toEqual(ids)
  })
})

describe('validating', () => {
  it('says what a SKILL.md is, and creates nothing', async () => {
    const name = newName()
    const validate = (text: string) => call(api, 'POST', '/v1/skills/validate', { skill_md: text })
    expect(await validate(skillMd(name, 'Do it.', 'colour: red\n'))).toMatchObject({
      status: 200,
      body: {
        valid: true,
        name,
        description: `Does ${name}`,
        errors: [],
        warnings: ['colour: is not a field of a skill, and is ignored'],
      },
    })
    expect(await validate('---\nname: A\n---\n')).toMatchObject({
      status: 200,
      body: {
        valid: false,
        name: 'A',
        description: null,
        errors: [expect.stringMatching(/^name: /), 'description: is required'],
        warnings: ['body: is empty'],
      },
    })
    expect(await validate('x'.repeat(MIB))).toMatchObject({ status: 200, body: { valid: false } })
    expect((await create(skillMd(name))).status).toBe(201)
  })
})

describe('an upload with an Idempotency-Key', () => {
  it('is recognized by its bytes', async () => {
    const headers = { 'Idempotency-Key': newUuid() }
    const entries = [{ name: 'SKILL.md', data: skillMd(newName()) }]
    const first = await upload(entries, headers)
    expect(idOf(await upload(entries, headers))).toBe(idOf(first))
    const form = formOf(zipOf(entries), 'other.zip', 'application/zip')
    expect(idOf(await call(api, 'POST', '/v1/skills/upload', form, headers))).toBe(idOf(first))
    expectError(
      await upload([...entries, { name: 'a' }], headers),
      409,
      /^Idempotency-Key: was already used for a different request/,
    )
  })
})
