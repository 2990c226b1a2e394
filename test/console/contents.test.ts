import { describePages } from '../support/chromium.ts'
import { closeBrowser, looks, openConsole } from '../support/console.ts'
import { call, createScriptedSession, waitUntilIdle } from '../support/http.ts'
import { newOrganization } from '../support/shared/service.ts'
import { post } from '../support/turns.ts'

afterAll(closeBrowser)

const CAPABILITIES = ['session_file_system', 'session_sql_database', 'session_storage'].map((ref) => ({ ref }))
const toolCall = (name: string, args: object) => ({ name, arguments: args })

/** A first turn makes one of everything, a second one changes a line of a file. */
const STEPS = [
  {
    tool_calls: [
      toolCall('write_file', { path: '/src/a.txt', content: 'one\ntwo\nthree\n' }),
      toolCall('sql_execute', { database: 'shop', sql: 'CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)' }),
      toolCall('kv_store', { operation: 'set', key: 'colour', value: 'blue' }),
      toolCall('secret_store', { operation: 'set', name: 'TOKEN', value: 'never shown' }),
    ],
  },
  {
    tool_calls: [
      toolCall('sql_execute', { database: 'shop', sql: "INSERT INTO items (name) VALUES ('<b>door</b>'), (NULL)" }),
    ],
  },
  { text: 'Made.' },
  { tool_calls: [toolCall('edit_file', { path: '/src/a.txt', old_text: 'two', new_text: 'TWO' })] },
  { text: 'Changed.' },
]

describePages('what a session holds', () => {
  it.each(looks('wide dark', 'narrow light'))('is seen and changed in a %s window', async (look) => {
    const api = await newOrganization()
    const id = await createScriptedSession(api, STEPS, { capabilities: CAPABILITIES })
    await post(api, id)
    const events = await waitUntilIdle(api, id)
    const failed = events.filter(({ type, data }) => type === 'tool.completed' && data.status !== 'success')
    expect(failed.map(({ data }) => data.error ?? data.result)).toEqual([])

    const opened = await openConsole(api.url, { look, organization: api.id, at: `#/sessions/${id}/files`, isNew: true })
    const { page } = opened
    await page.getByRole('button', { name: 'Contents of src' }).click()
    await page.getByRole('link', { name: 'a.txt' }).waitFor()
    await opened.expectAccessible()
    await page.getByRole('link', { name: 'src/' }).click()
    await page.getByRole('link', { name: 'a.txt' }).click()
    await page.getByText('three').waitFor()
    // What the agent changes is marked.
    await post(api, id)
    await page.locator('mark', { hasText: 'TWO' }).waitFor()
    await opened.expectAccessible()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('a.txt')
    await page.getByRole('link', { name: 'src', exact: true }).click()
    const files = [
      { name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('needle in <i>hay</i>') },
      {
        name: 'c.png',
        mimeType: 'image/png',
        buffer: await page.screenshot({ clip: { x: 0, y: 0, width: 9, height: 9 } }),
      },
    ]
    await page.getByLabel('Upload files').setInputFiles(files)
    await page.getByRole('link', { name: 'c.png' }).click()
    await page.getByRole('img', { name: '/src/c.png' }).waitFor()
    await page.getByLabel('Search in files').fill('need.e')
    await page.keyboard.press('Enter')
    await page.getByText('needle in <i>hay</i>').waitFor()
    await opened.expectAccessible()
    await page.getByRole('link', { name: '/src/b.txt' }).click()
    await page.getByText('needle').waitFor()
    await page.getByRole('link', { name: 'src', exact: true }).click()
    await opened.choose('c.png', 'Delete')
    await opened.agree('Delete')
    await page.getByRole('link', { name: 'c.png' }).waitFor({ state: 'detached' })

    await page.getByRole('link', { name: 'Databases' }).first().click()
    await page.getByRole('link', { name: 'shop' }).click()
    await page.getByText('id INTEGER (primary key), name TEXT').waitFor()
    await page.getByRole('button', { name: 'Show rows' }).click()
    await page.getByRole('cell', { name: '<b>door</b>' }).waitFor()
    await page.getByRole('cell', { name: 'NULL' }).waitFor()
    await opened.expectAccessible()
    await page.getByLabel('SQL').fill('DROP TABLE items')
    await page.getByRole('button', { name: 'Run' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('SQL').fill('SELECT count(*) AS many FROM items')
    await page.getByRole('button', { name: 'Run' }).click()
    await page.getByRole('columnheader', { name: 'many' }).waitFor()

    await page.getByRole('link', { name: 'Storage' }).click()
    await page.getByText('blue').waitFor()
    await page.getByText('TOKEN', { exact: true }).waitFor()
    expect(await page.getByText('never shown').count()).toBe(0)
    await opened.expectAccessible()
    expect((await call(api, 'GET', `/v1/sessions/${id}/databases`)).body.data).toHaveLength(1)
    opened.expectNoComplaints()
    await opened.close()
  })
})
