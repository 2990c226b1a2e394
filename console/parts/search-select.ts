import { isNotFound, useLoad } from '../load.ts'
import { html, useEffect, useState, type VNode } from '../ui.ts'
import { Problem } from './page.ts'
import { SearchEntry } from './search-box.ts'

/** Number of things above which they are searched. */
const MAX_OPTIONS = 50

/** Thing that can be chosen. */
export type Choice = { id: string; name: string }

/** Attributes of a choice of one kind of things. */
export type SelectProps = {
  /** Id of the chosen thing. It need not be among the things that are found. */
  value?: string | null
  /** Label of the empty choice. Without one, a thing must be chosen. */
  none?: string
  onChange?(id: string): void
  /** Further attributes of the select, such as `id`, `name` and `aria-label`. */
  [attribute: string]: unknown
}

type Props = SelectProps & {
  /** Name of the kind, such as `agent`. */
  one: string
  /** Finds the first things that match a text, at most so many. */
  find(search: string, limit: number): Promise<Choice[]>
  /** Names a thing that is not among these. */
  nameOf(id: string): Promise<string | undefined>
}

/** Choice of a thing by its name. With more than 50, a search above it narrows them. */
export function SearchSelect({ one, find, nameOf, value, none, onChange, ...attributes }: Props): VNode {
  const [chosen, setChosen] = useState(value ?? '')
  const [search, setSearch] = useState('')
  const [isLong, setLong] = useState(false)
  useEffect(() => setChosen(value ?? ''), [value])
  const { value: found, error } = useLoad(async () => {
    const some = await find(search, MAX_OPTIONS + 1).catch(noneOf)
    if (some.length > MAX_OPTIONS) setLong(true)
    return some.slice(0, MAX_OPTIONS)
  }, [search])
  const isListed = chosen === '' || found?.some(({ id }) => id === chosen)
  const isNamed = found === undefined || isListed
  const { value: name } = useLoad(async () => (isNamed ? undefined : nameOf(chosen)), [chosen, isNamed])
  const change = (event: Event) => {
    const { value: id } = event.target as HTMLSelectElement
    setChosen(id)
    onChange?.(id)
  }
  return html`<span class="search-select">
    ${isLong && html`<${SearchEntry} label=${`Search ${one}s`} onSearch=${setSearch} />`}
    <select ...${attributes} onChange=${change}>
      ${(none !== undefined || chosen === '') && html`<option value="" selected=${chosen === ''}>${none ?? `Choose ${one === 'agent' ? 'an' : 'a'} ${one}`}</option>`}
      ${!isListed && html`<option key=${chosen} value=${chosen} selected>${name ?? chosen}</option>`}
      ${found?.map((thing) => html`<option key=${thing.id} value=${thing.id} selected=${thing.id === chosen}>${thing.name}</option>`)}
    </select>
    ${search && html`<span class="quiet" role="status">${found?.length === 0 && `No ${one}s found`}</span>`}
    <${Problem} error=${error} /></span>`
}

/** Takes an id of nothing for a search that finds nothing. */
function noneOf(error: unknown): Choice[] {
  if (isNotFound(error)) return []
  throw error
}
