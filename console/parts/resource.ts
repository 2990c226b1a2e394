import { useLoad } from '../load.ts'
import { go, link, route } from '../router.ts'
import { type ComponentChildren, html, useState, type VNode } from '../ui.ts'
import { CopyId } from './copy.ts'
import { Empty } from './empty.ts'
import { changesOf, type Field, Form, givenOf, type Values } from './form.ts'
import { Icon } from './icon.ts'
import { Menu, type MenuItem } from './menu.ts'
import { ActionButton, Page, Problem, Quiet } from './page.ts'
import { Skeleton } from './skeleton.ts'
import { type Column, Table } from './table.ts'
import { type Step, UseFromCode } from './use-from-code.ts'

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
  /** Page that makes a new resource, in place of the form. */
  New?(): VNode
  /** Which resources a list shows only on request, and the label of the box for them. */
  hidden?: { label: string; isHidden(item: T): boolean }
  /** Receives only the changed values. */
  update?(item: T, changes: Values): Promise<unknown>
  remove?: Action<T> & { question(item: T): string }
  /** Further actions on a resource. */
  actions?: Action<T>[]
  /** Status of a resource, beside its name. */
  badge?(item: T): ComponentChildren
  /** Facts about a resource, below its name. */
  facts?(item: T): ComponentChildren[]
  /** Requests by which programs use a resource. */
  steps?(item: T): Step[]
  /** Details of a resource, below its form. */
  Detail?(props: { item: T; reload(): void }): VNode
  /** Shown once after a creation, such as a secret. */
  Created?(props: { item: T }): VNode
}

// biome-ignore lint/suspicious/noExplicitAny: a view gets a resource of any kind
export function ResourceView({ resource }: { resource: Resource<any> }): VNode {
  const id = route.value.path[1]
  if (id === undefined) return html`<${List} resource=${resource} />`
  if (id === 'new') return html`<${resource.New ?? Create} resource=${resource} />`
  return html`<${Edit} key=${id} id=${id} resource=${resource} />`
}

function List<T>({ resource }: { resource: Resource<T> }): VNode {
  const { path, title, one, about, columns, mayWrite = () => true } = resource
  const { value: items, error, reload } = useLoad(resource.list, [path])
  const { shown, Choice } = useChoice(resource, items)
  const isEditable = resource.update !== undefined || resource.Detail !== undefined
  const nameCell = (item: T) => {
    const name = resource.nameOf(item)
    return isEditable
      ? html`<a class="clamp" href=${link(path, resource.idOf(item))}>${name}</a>`
      : html`<span class="clamp">${name}</span>`
  }
  const canCreate = (resource.create ?? resource.New) !== undefined && mayWrite()
  const create =
    canCreate && html`<a class="button primary" href=${link(path, 'new')}><${Icon} name="plus" />New ${one}</a>`
  const purpose = typeof about === 'function' ? about() : about
  const none = html`<${Empty} icon=${resource.icon} title=${`No ${inSentence(title)} yet`} about=${purpose} action=${create} code=${canCreate ? resource.example?.() : undefined} />`
  return html`<${Page} title=${title} actions=${items?.length !== 0 && create}>
    ${resource.Tabs && html`<${resource.Tabs} />`}
    ${purpose && items?.length !== 0 && html`<${Quiet}>${purpose}<//>`}
    <${Problem} error=${error} />
    ${Choice}
    ${
      (items !== undefined || error === undefined) &&
      html`<${Table} items=${shown} keyOf=${resource.idOf} columns=${[{ title: 'Name', cell: nameCell }, ...columns]} none=${items?.length === 0 ? none : 'Nothing matches.'}
      actions=${(item: T) => html`<${Menu} label=${`Actions for ${resource.nameOf(item)}`} items=${menuOf(resource, item, reload, reload)} />`} />`
    }
  <//>`
}

/** Returns a title as it is in the middle of a sentence. Abbreviations keep their capitals. */
const inSentence = (title: string): string => title.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())

/** Length from which a list can be searched. */
const LONG_LIST = 12

/** Lets the user search a long list, and show resources that are hidden at first. */
function useChoice<T>(
  resource: Resource<T>,
  items: T[] | undefined,
): { shown: T[] | undefined; Choice: VNode | false } {
  const { hidden, nameOf, idOf } = resource
  const [isAll, setAll] = useState(false)
  const [text, setText] = useState('')
  const isWanted = (item: T) =>
    (isAll || !hidden?.isHidden(item)) &&
    `${nameOf(item)} ${idOf(item)}`.toLowerCase().includes(text.trim().toLowerCase())
  const count = hidden === undefined ? 0 : (items?.filter(hidden.isHidden).length ?? 0)
  const isLong = items !== undefined && items.length >= LONG_LIST
  const type = (event: Event) => setText((event.target as HTMLInputElement).value)
  const Choice =
    (isLong || count > 0) &&
    html`<div class="filters">
      ${isLong && html`<input type="search" aria-label="Search" placeholder="Search" value=${text} onInput=${type} />`}
      ${hidden && count > 0 && html`<label class="check"><input type="checkbox" checked=${isAll} onChange=${() => setAll(!isAll)} /> ${hidden.label} (${count})</label>`}
    </div>`
  return { shown: items?.filter(isWanted), Choice }
}

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
  const actions = html`${item !== undefined && resource.steps && html`<${UseFromCode} steps=${resource.steps(item)} />`}
    ${entries.map(
      ({ label, run, question, isDangerous, icon }) =>
        html`<${ActionButton} key=${label} icon=${icon} className=${isDangerous ? 'danger' : ''} question=${question} confirm=${label} run=${run}>${label}<//>`,
    )}`
  const head =
    item === undefined
      ? { title: one }
      : {
          title: resource.nameOf(item),
          badge: resource.badge?.(item),
          facts: [...(resource.facts?.(item) ?? []), html`<${CopyId} id=${id} />`],
        }
  return html`<${Page} ...${head} back=${back} actions=${actions}>
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
