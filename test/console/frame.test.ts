import { describePages } from '../support/chromium.ts'
import { closeBrowser, openConsole } from '../support/console.ts'
import { call } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})
afterAll(closeBrowser)

describePages('MCP servers', () => {
  it.each(['wide', 'narrow'] as const)('are made, changed and deleted in a %s window', async (size) => {
    const { page, expectNoComplaints, expectAccessible } = await openConsole(api.url, { size, organization: api.id })
    await page.getByRole('link', { name: 'MCP servers' }).click()
    await expectAccessible()
    await page.getByRole('link', { name: 'New MCP server' }).click()
    await page.getByLabel('Name').fill('Files')
    await page.getByLabel('Address').fill('https://mcp.example.com/mcp')
    await page.getByLabel('Headers').fill('{"X-Team": "blue"')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Headers is not valid JSON').waitFor()
    await page.getByLabel('Headers').fill('{"X-Team": "blue"}')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByLabel('Description').fill('All the files')
    await expectAccessible()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const { body } = await call(api, 'GET', '/v1/mcp-servers')
    expect(body.data).toMatchObject([{ name: 'Files', description: 'All the files', headers: { 'X-Team': '***' } }])
    page.once('dialog', (dialog) => dialog.accept())
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('There is no such MCP server').waitFor()
    await page.getByRole('link', { name: 'Back' }).click()
    await page.getByText('None yet.').waitFor()
    expectNoComplaints()
  })
})
