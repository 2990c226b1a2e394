import { useLoad } from '../load.ts'
import { go, link, route } from '../router.ts'
import { html, useState, type VNode } from '../ui.ts'
import { Empty } from './empty.ts'
import { changesOf, type Field, Form, givenOf, type Values } from './form.ts'
import { Icon } from './icon.ts'
import { Menu, type MenuItem } from './menu.ts'
import { ActionButton, Page, Problem, Quiet } from './page.ts'
import { Skeleton } from './skeleton.ts'
import { type Column, Table } from './table.ts'

/** A sentence that `run` returns is shown. */
type Action<T> = {
  label: string | ((item: T) => string)
  icon?: string
  isOffered?(item: T): boolean
  /** Whether it is also for users who may not change the resource. */
  isForAll?: boolean
  run(item: T): Promise<unknown>
}

/** Resources of one kind: a list at `#/<path>`, and forms at `#/<path>/new` and `#/<path>/<id>`. */
export type Resource<T> = {
  path: string
  /** Name of the list. */
  title: string
  /** Name of one resource: `MCP server`. */
  one: string
  /** Purpose of the list; shown above it. */
  about?: string | (() => string)
  /** Name of its icon. */
  icon: string
  /** Command that creates one; shown while there is none. */
  example?(): string
  /** Links between lists that belong together, above the list. */
  Tabs?(): VNode
  /** Whether the user may create resources, or change one. Default: yes. */
  mayWrite?(item?: T): boolean
  list(): Promise<T[]>
  /** Reads one resource. Default: finds it in the list. */
  get?(id: string): Promise<T>
  idOf(item: T): string
  nameOf(item: T): string
  columns: Column<T>[]
  /** Fields of the form, for a new or an existing resource. */
  fields?(item: T | undefined): Field[] | Promise<Field[]>
  valuesOf?(item: T): Values
  /** Initial values of the form for a new resource. */
  defaults?: Values
  create?(values: Values): Promise<T>
  /** Receives only the changed values. */
  update?(item: T, changes: Values): Promise<unknown>
  remove?: Action<T> & { question(item: T): string }
  /** Further actions on a resource. */
  actions?: Action<T>[]
  /** Details of a resource, below its form. */
  Detail?(props: { item: T; reload(): void }): VNode
  /** Shown once after a creation, such as a secret. */
  Created?(props: { item: T }): VNode
}

// biome-ignore lint/suspicious/noExplicitAny: a view gets a resource of any kind
export function ResourceView({ resource }: { resource: Resource<any> }): VNode {
  const id = route.value.path[1]
  if (id === undefined) return html`<${List} resource=${resource} />`
  if (id === 'new') return html`<${Create} resource=${resource} />`
  return html`<${Edit} key=${id} id=${id} resource=${resource} />`
}

function List<T>({ resource }: { resource: Resource<T> }): VNode {
  const { path, title, one, about, columns, mayWrite = () => true } = resource
  const { value: items, error, reload } = useLoad(resource.list, [path])
  const isEditable = resource.update !== undefined || resource.Detail !== undefined
  const nameCell = (item: T) => {
    const name = resource.nameOf(item)
    return isEditable ? html`<a href=${link(path, resource.idOf(item))}>${name}</a>` : name
  }
  const canCreate = resource.create !== undefined && mayWrite()
  const create =
    canCreate && html`<a class="button primary" href=${link(path, 'new')}><${Icon} name="plus" />New ${one}</a>`
  const purpose = typeof about === 'function' ? about() : about
  const none = html`<${Empty} icon=${resource.icon} title=${`No ${inSentence(title)} yet`} about=${purpose} action=${create} code=${canCreate ? resource.example?.() : undefined} />`
  return html`<${Page} title=${title} actions=${items?.length !== 0 && create}>
    ${resource.Tabs && html`<${resource.Tabs} />`}
    ${purpose && items?.length !== 0 && html`<${Quiet}>${purpose}<//>`}
    <${Problem} error=${error} />
    ${
      (items !== undefined || error === undefined) &&
      html`<${Table} items=${items} keyOf=${resource.idOf} columns=${[{ title: 'Name', cell: nameCell }, ...columns]} none=${none}
      actions=${(item: T) => html`<${Menu} label=${`Actions for ${resource.nameOf(item)}`} items=${menuOf(resource, item, reload, reload)} />`} />`
    }
  <//>`
}

/** Returns a title as it is in the middle of a sentence. Abbreviations keep their capitals. */
const inSentence = (title: string): string => title.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())

/** Returns the actions on a resource that its user may take. */
function menuOf<T>(resource: Resource<T>, item: T, onDone: () => void, onRemoved: () => void): MenuItem[] {
  const { actions = [], remove, mayWrite = () => true } = resource
  const isOffered = (action: Action<T>) => (action.isForAll || mayWrite(item)) && (action.isOffered?.(item) ?? true)
  const entryOf = (action: Action<T>, done: () => void): MenuItem => ({
    label: typeof action.label === 'function' ? action.label(item) : action.label,
    icon: action.icon,
    run: async () => {
      const outcome = await action.run(item)
      done()
      return outcome
    },
  })
  const removal = remove &&
    isOffered(remove) && {
      icon: 'trash',
      ...entryOf(remove, onRemoved),
      isDangerous: true,
      question: remove.question(item),
    }
  return [...actions.filter(isOffered).map((action) => entryOf(action, onDone)), ...(removal ? [removal] : [])]
}

function Create<T>({ resource }: { resource: Resource<T> }): VNode {
  const { path, one, Created } = resource
  const [created, setCreated] = useState<T | undefined>(undefined)
  const { value: fields, error } = useLoad(async () => resource.fields?.(undefined) ?? [], [path])
  const submit = async (values: Values) => {
    const item = await resource.create?.(givenOf(values))
    if (Created && item !== undefined) setCreated(() => item)
    else go(link(path), { replace: true })
  }
  const back = { title: resource.title, href: link(path) }
  return html`<${Page} title=${`New ${one}`} back=${back}>
    <${Problem} error=${error} />
    ${
      created === undefined
        ? fields && html`<${Form} fields=${fields} values=${resource.defaults} action="Create" onSubmit=${submit} />`
        : Created && html`<${Created} item=${created} />`
    }
  <//>`
}

function Edit<T>({ resource, id }: { resource: Resource<T>; id: string }): VNode {
  const { path, one, Detail, mayWrite = () => true } = resource
  const loaded = useLoad(async () => {
    const find = async () => (await resource.list()).find((candidate) => resource.idOf(candidate) === id)
    const item = await (resource.get?.(id) ?? find())
    if (item === undefined) throw new Error(`There is no such ${one}.`)
    return { item, fields: (await resource.fields?.(item)) ?? [] }
  }, [path, id])
  const { item, fields = [] } = loaded.value ?? {}
  const submit = async (values: Values) => {
    if (item === undefined) return
    await resource.update?.(item, changesOf(values, resource.valuesOf?.(item) ?? {}))
    loaded.reload()
  }
  const back = { title: resource.title, href: link(path) }
  const entries = item === undefined ? [] : menuOf(resource, item, loaded.reload, () => go(link(path)))
  return html`<${Page} title=${item === undefined ? one : resource.nameOf(item)} back=${back} actions=${entries.map(
    ({ label, run, question, isDangerous, icon }) =>
      html`<${ActionButton} key=${label} icon=${icon} className=${isDangerous ? 'danger' : ''} question=${question} confirm=${label} run=${run}>${label}<//>`,
  )}>
    <${Problem} error=${loaded.error} />
    ${item === undefined && loaded.error === undefined && html`<${Skeleton} />`}
    ${
      item !== undefined &&
      html`
      ${resource.update && !mayWrite(item) && html`<${Quiet}>Owners and administrators of the organization can change this.<//>`}
      ${resource.update && html`<${Form} isReadOnly=${!mayWrite(item)} fields=${fields} values=${resource.valuesOf?.(item)} action="Save" done="Saved." onSubmit=${submit} />`}
      ${Detail && html`<${Detail} item=${item} reload=${loaded.reload} />`}`
    }
  <//>`
}
