import type { KeyValueInfo, SecretInfo } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Problem } from '../../parts/page.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'

const changed = {
  title: 'Changed',
  cell: ({ updated_at }: { updated_at: string }) => html`<${Time} at=${updated_at} />`,
}
const VALUES: Column<KeyValueInfo>[] = [
  { title: 'Key', cell: ({ key }) => key },
  { title: 'Value', cell: ({ value }) => html`<pre class="text short" dir="auto" tabindex="0">${value}</pre>` },
  changed,
]
const SECRETS: Column<SecretInfo>[] = [{ title: 'Name', cell: ({ name }) => name }, changed]

/** Values that an agent keeps, and the names of its secrets. */
export function Storage({ sessionId }: { sessionId: string }): VNode {
  const path = { session_id: sessionId }
  const values = useLoad(async () => (await api.storage.listKeys(path)).data, [sessionId])
  const secrets = useLoad(async () => (await api.storage.listSecrets(path)).data, [sessionId])
  return html`<section>
    <h2>Values</h2>
    <${Problem} error=${values.error} />
    <${Table} items=${values.value} keyOf=${({ key }: KeyValueInfo) => key} columns=${VALUES} none="None yet: an agent with the capability Storage keeps them with kv_store." />
    <h2>Secrets</h2>
    <${Problem} error=${secrets.error} />
    <${Table} items=${secrets.value} keyOf=${({ name }: SecretInfo) => name} columns=${SECRETS} none="None yet: an agent with the capability Storage keeps them with secret_store." />
  </section>`
}
