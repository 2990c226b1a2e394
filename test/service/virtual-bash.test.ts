import {
  call,
  createScriptedSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { cancel } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

/** Creates a session whose model runs these commands, one after the other. */
const createBashSession = (commands: string[]): Promise<string> =>
  createScriptedSession(
    api,
    [...commands.map((command) => ({ tool_calls: [{ name: 'bash', arguments: { command } }] })), { text: 'done' }],
    { capabilities: [{ ref: 'virtual_bash' }] },
  )

const send = (id: string) => call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
const waitUntilRunning = (id: string) =>
  waitFor(async () => (await listEvents(api, id)).some(({ type }) => type === 'tool.started'), 'the command to run')
const results = async (id: string): Promise<Json[]> =>
  (await waitUntilIdle(api, id))
    .filter((event) => event.type === 'tool.completed')
    .map(({ data }) => (data.result ? JSON.parse(data.result[0].text) : data.error))

describe('bash in a turn', () => {
  it('reads, changes and moves what the session has', async () => {
    const id = await createBashSession([
      'mkdir -p src && cat in/a.txt in/b.bin | wc -c && sed s/one/1/ in/a.txt > src/a.txt && ln -s x y',
      'mv in out; rm out/b.bin; echo more >> out/a.txt; find . -name "*.txt" | xargs cat',
    ])
    const fs = (path: string) => `/v1/sessions/${id}/fs${path}`
    await call(api, 'POST', fs('/in/a.txt'), { content: 'one\ntwo\n' })
    const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251))
    await call(api, 'POST', fs('/in/b.bin'), { content: bytes.toString('base64'), encoding: 'base64' })
    await send(id)
    expect(await results(id)).toEqual([
      { exit_code: 1, stdout: '200008\n', stderr: expect.stringMatching(/^ln: /) },
      { exit_code: 0, stdout: 'one\ntwo\nmore\n1\ntwo\n', stderr: '' },
    ])
    const { body } = await call(api, 'GET', fs('/?recursive=true'))
    expect(body.data.map((file: Json) => [file.path, file.size_bytes])).toEqual([
      ...[
        ['/out', 0],
        ['/out/a.txt', 13],
        ['/src', 0],
        ['/src/a.txt', 6],
      ],
    ])
  })

  it('keeps nothing when somebody else changes a file meanwhile', async () => {
    const id = await createBashSession(['echo before > b.txt; cat a.txt; sleep 3; echo mine >> a.txt', 'cat a.txt; ls'])
    const path = `/v1/sessions/${id}/fs/a.txt`
    await call(api, 'POST', path, { content: 'first\n' })
    await send(id)
    await waitUntilRunning(id)
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await call(api, 'PUT', path, { content: 'theirs\n' })
    const [refused, seen] = await results(id)
    expect(refused).toMatch(/^\/a\.txt has been changed meanwhile; .* Nothing that the command changed was kept\.$/)
    expect(seen).toMatchObject({ exit_code: 0, stdout: 'theirs\na.txt\n' })
  })

  it('runs for twenty sessions at once when it only sleeps', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => createBashSession(['sleep 3'])))
    const startedAt = Date.now()
    await Promise.all(ids.map(send))
    const all = await Promise.all(ids.map(results))
    expect(all).toEqual(ids.map(() => [{ exit_code: 0, stdout: '', stderr: '' }]))
    // One after the other, they would take a minute.
    expect(Date.now() - startedAt).toBeLessThan(45_000)
  })

  it('is stopped when its turn is cancelled', async () => {
    const id = await createBashSession(['echo x > x.txt; while true; do :; done'])
    await send(id)
    await waitUntilRunning(id)
    await cancel(api, id)
    await waitUntilIdle(api, id)
    expect((await call(api, 'GET', `/v1/sessions/${id}/fs`)).body.data).toEqual([])
  })
})
