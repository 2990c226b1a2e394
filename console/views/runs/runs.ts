import type { Turn } from 'agent-session-client'
import { useEvery, useLoad } from '../../load.ts'
import { useAgentNames } from '../../parts/agent-select.ts'
import { Badge } from '../../parts/badge.ts'
import { MarkedRun } from '../../parts/compare.ts'
import { costOf } from '../../parts/cost.ts'
import { Empty } from '../../parts/empty.ts'
import { Menu } from '../../parts/menu.ts'
import { ActionButton, Page, Problem } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { RUN_ERRORS } from '../../parts/run-errors.ts'
import { RunTime } from '../../parts/run-time.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { runCommand } from '../../parts/use-from-code.ts'
import { link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useEffect, useRef, type VNode } from '../../ui.ts'
import { countUnfinished, labelOf, menuOf, stopAll } from './actions.ts'
import { FilterBar } from './filter-bar.ts'
import { CHIPS, FILTERS, filtersOf, isChosen, runsLink } from './filters.ts'
import { useRuns } from './use-runs.ts'

/** Interval between counts, which cost more than a page of the list. */
const COUNT_MS = 10_000

/** Turns of all sessions at `#/runs`, by the filters in the address. */
export function View(): VNode {
  const { query } = route.value
  const unfinished = useLoad(() => countUnfinished(query), [query.toString()])
  useEvery(COUNT_MS, unfinished.refresh)
  // The number is stale while another one is loaded.
  const { value: count = 0, reload } = unfinished
  const stop = async () => {
    const outcome = await stopAll()
    reload()
    return outcome
  }
  const actions = html`<${ActionButton} className="danger" icon="stop" run=${stop}>
    Stop all matching${count > 0 && ` (${count.toLocaleString()})`}<//>`
  return html`<${Page} title="Runs" actions=${count > 0 && actions}>
    <${Chips} query=${query} unfinished=${count} />
    <${FilterBar} />
    <${MarkedRun} />
    <${List} key=${query.toString()} query=${query} unfinished=${count} onChange=${reload} />
  <//>`
}

/** Choices of the status with their numbers, which follow the other filters. */
function Chips({ query, unfinished }: { query: URLSearchParams; unfinished: number }): VNode {
  const others = new URLSearchParams(query)
  for (const name of ['status', 'stalled', 'order']) others.delete(name)
  const { value: counts, refresh } = useLoad(() => api.turns.count(filtersOf(others)), [others.toString(), unfinished])
  useEvery(COUNT_MS, refresh)
  return html`<nav class="tabs chips" aria-label="Status">${CHIPS.map((chip) => {
    const { title, status, isStalled, count } = chip
    const href = runsLink(query, { status, stalled: isStalled ? 'true' : undefined, order: undefined })
    return html`<a key=${title} href=${href} aria-current=${isChosen(query, chip) ? 'page' : undefined}>${title}${
      counts && html` <span class="count">${count(counts).toLocaleString()}</span>`
    }</a>`
  })}</nav>`
}

type ListProps = {
  query: URLSearchParams
  /** Number of runs that can be stopped. */
  unfinished: number
  onChange(): void
}

function List({ query, unfinished, onChange }: ListProps): VNode {
  const list = useRef<HTMLDivElement>(null)
  const { rows, error, fresh, showFresh, hasMore, more, reload } = useRuns(query, list)
  const nameOf = useAgentNames(rows?.map(({ agent_id }) => agent_id) ?? [])
  const changed = () => {
    reload()
    onChange()
  }
  // Runs that were stopped together change here, too.
  useEffect(() => {
    if (rows !== undefined) reload()
  }, [unfinished])
  const isFiltered = ['status', 'stalled', ...FILTERS].some((name) => query.has(name))
  const none = isFiltered
    ? html`<${Empty} icon="run" title="No runs match" about="Change or clear the filters to see others." />`
    : html`<${Empty} icon="run" title="No runs yet" about="A run is the answer to one message, with all its model calls and tools. This page has the runs of all sessions."
        action=${html`<a class="button primary" href=${link('sessions', 'new')}>New session</a>`} code=${runCommand()} />`
  return html`<div ref=${list} class="runs">
    <${Problem} error=${error} />
    <p class="fresh" role="status">${fresh > 0 && html`<button type="button" onClick=${showFresh}>${fresh} new</button>`}</p>
    ${
      (rows !== undefined || error === undefined) &&
      html`<${Table} items=${rows} keyOf=${({ id }: Turn) => id} columns=${columnsOf(nameOf)} none=${none}
      actions=${(run: Turn) => html`<${Menu} label=${`Actions for ${labelOf(run)}`} items=${menuOf(run, changed)} />`} />`
    }
    ${hasMore && html`<button type="button" onClick=${more}>Show more</button>`}
  </div>`
}

const columnsOf = (nameOf: (agentId: string) => string): Column<Turn>[] => [
  {
    title: 'Message',
    cell: (run) =>
      html`<a class="clipped" href=${`${link('sessions', run.session_id)}?turn=${run.id}`} title=${plain(labelOf(run))}>${labelOf(run)}</a>`,
  },
  {
    title: 'Status',
    cell: ({ status, stalled }) => html`<${Badge} status=${stalled ? 'stalled' : status} ...${WORDS[status] ?? {}} />`,
  },
  {
    title: 'Agent',
    cell: ({ agent_id }) => {
      // A link needs a text, which comes later.
      const name = agent_id && nameOf(agent_id)
      return name && html`<a class="clipped" href=${link('agents', agent_id)} dir="auto">${name}</a>`
    },
  },
  { title: 'Error', cell: errorCell },
  { title: 'Duration', isNumber: true, cell: (turn) => html`<${RunTime} turn=${turn} />` },
  { title: 'Cost', isNumber: true, cell: ({ iterations, cost_usd }) => (iterations > 0 ? costOf(cost_usd) : '') },
  {
    title: 'Tokens',
    isNumber: true,
    isMinor: true,
    cell: ({ iterations, usage }) =>
      iterations > 0 ? (usage.input_tokens + usage.output_tokens).toLocaleString() : '',
  },
  { title: 'Started', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
]

/** Of all sessions, a run seldom waits for who looks at it. */
const WORDS: Partial<Record<Turn['status'], object>> = { waiting: { word: 'Waiting' } }

function errorCell({ error, error_code }: Turn): VNode | null {
  if (!error && !error_code) return null
  return html`<span class="run-error" title=${plain([error_code, error].filter(Boolean).join(': '))}>${error_code ? RUN_ERRORS[error_code] : 'Failed'}
    ${error_code && html` <code>${error_code}</code>`}</span>`
}
