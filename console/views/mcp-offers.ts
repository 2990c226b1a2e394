import { useLoad } from '../load.ts'
import { Problem, Quiet } from '../parts/page.ts'
import { api } from '../service.ts'
import type { VNode } from '../ui.ts'
import { html, useState } from '../ui.ts'

/** Resources and prompts of an MCP server, which is asked for them when they are unfolded. */
export function Offers({ id }: { id: string }): VNode {
  const resources = async () => {
    const { data, templates } = await api.mcpServers.listMcpResources({ server_id: id })
    const all = [
      ...data.map((one) => ({ ...one, id: one.uri })),
      ...templates.map((one) => ({ ...one, id: one.uri_template })),
    ]
    return all.map(({ name, title, description, id: address }) => ({
      name: title ?? name,
      about: description,
      id: address,
    }))
  }
  const prompts = async () => {
    const { data } = await api.mcpServers.listMcpPrompts({ server_id: id })
    return data.map(({ name, title, description, arguments: taken }) => ({
      name: title ?? name,
      about: description,
      id: `${name}(${taken.map((argument) => argument.name).join(', ')})`,
    }))
  }
  return html`<${Folded} title="Resources" load=${resources} /><${Folded} title="Prompts" load=${prompts} />`
}

type Offer = { name: string; about?: string | undefined; id: string }

function Folded({ title, load }: { title: string; load(): Promise<Offer[]> }): VNode {
  const [isOpen, setOpen] = useState(false)
  const open = (event: Event) => setOpen((event.target as HTMLDetailsElement).open)
  return html`<details class="offers" onToggle=${open}><summary><h2>${title}</h2></summary>${isOpen && html`<${Offered} load=${load} />`}</details>`
}

function Offered({ load }: { load(): Promise<Offer[]> }): VNode {
  const { value, error } = useLoad(load, [])
  if (value === undefined)
    return error === undefined ? html`<${Quiet}>Asking the server…<//>` : html`<${Problem} error=${error} />`
  if (value.length === 0) return html`<${Quiet}>It offers none.<//>`
  return html`<ul class="offered">${value.map(
    ({ name, about, id }) =>
      html`<li key=${id}><strong dir="auto">${name}</strong> <code>${id}</code>${about && html`<p class="quiet clamp" dir="auto">${about}</p>`}</li>`,
  )}</ul>`
}
