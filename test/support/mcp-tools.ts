import { waitFor } from './http.ts'
import type { Organization } from './shared/service.ts'

/** Waits until the first attempt to read the tools of an MCP server is over, which nothing changes afterwards. */
export const untilTried = (api: Organization, uuid: string): Promise<unknown> =>
  waitFor(
    async () => (await api.query('SELECT tools_error FROM mcp_servers WHERE id = $1', [uuid]))[0].tools_error !== null,
    'the first attempt',
  )

/** Gives an MCP server a list of tools that has been read, and that differs from the accepted one since `changedAt`. */
export async function giveTools(api: Organization, uuid: string, changedAt: string | null = null): Promise<void> {
  await untilTried(api, uuid)
  const tools = { leftOut: [], tools: [{ name: 'search', description: 'Finds.', inputSchema: {}, fingerprint: 'new' }] }
  const set = `tools = $2, accepted_tools = '[["search","old"]]', protocol = '{"any":1}', tools_changed_at = $3,
    tools_error = NULL, tools_discovered_at = now(), tools_expire_at = now() + interval '1 hour'`
  await api.query(`UPDATE mcp_servers SET ${set} WHERE id = $1`, [uuid, JSON.stringify(tools), changedAt])
}
