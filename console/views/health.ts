import { ApiError, type DurableHealth, type DurableSnapshot } from 'agent-session-client'
import { Page, Problem, Quiet } from '../parts/page.ts'
import { api } from '../service.ts'
import { html, useEffect, useState, type VNode } from '../ui.ts'

const REFUSED = 'Only administrators of the default organization see the health of the service.'
/** Number of kept snapshots, and the period of the chart. */
const MAX_SNAPSHOTS = 1000
const SHOWN_MS = 10 * 60_000

const STATUS: Record<DurableHealth['status'], string> = {
  healthy: 'Healthy',
  warning: 'Needs attention',
  degraded: 'Degraded',
}

const LINES: { name: string; className: string; read(health: DurableHealth): number | null }[] = [
  { name: 'Unfinished turns', className: 'line-1', read: ({ turns }) => turns.running },
  {
    name: 'Tasks waiting for a worker',
    className: 'line-2',
    read: ({ task_queue_backlog }) => task_queue_backlog,
  },
  { name: 'Model calls being retried', className: 'line-3', read: ({ turns }) => turns.retrying },
]

/** Health of durable execution, live. */
export function View(): VNode {
  const { snapshots, error } = useSnapshots()
  const health = snapshots.at(-1)?.health
  return html`<${Page} title="Health">
    <${Problem} error=${error} />
    ${health === undefined && error === undefined && html`<${Quiet}>Loading…<//>`}
    ${
      health &&
      html`<p role="status"><b class=${health.status === 'healthy' ? '' : 'problem'}>${STATUS[health.status] ?? health.status}.</b>
          ${health.reasons.join(' ')}</p>
      <${Chart} snapshots=${snapshots} />
      <table><thead class="unseen"><tr><th scope="col">What</th><th scope="col">Number</th></tr></thead><tbody>
        ${LINES.map(
          ({ name, className, read }) =>
            html`<${Row} key=${name} name=${name} className=${className} value=${read(health)} />`,
        )}
        <${Row} name="Workers" value=${health.workers} />
        <${Row} name="Turns failed in the last hour" value=${health.turns.failed} />
        <${Row} name="Running schedule executions" value=${health.executions.running} />
        <${Row} name="Schedule executions failed in the last hour" value=${health.executions.failed} />
      </tbody></table>`
    }
  <//>`
}

const Row = ({ name, className, value }: { name: string; className?: string; value: number | null }): VNode =>
  html`<tr><th scope="row">${className && html`<svg class=${`key ${className}`} width="16" height="8" aria-hidden="true"><path d="M0 4H16" /></svg> `}${name}</th>
    <td>${value?.toLocaleString() ?? 'unknown'}</td></tr>`

/** Follows the stream of snapshots. */
function useSnapshots(): { snapshots: DurableSnapshot[]; error: unknown } {
  const [state, setState] = useState<{ snapshots: DurableSnapshot[]; error?: unknown }>({ snapshots: [] })
  useEffect(() => {
    const closed = new AbortController()
    const { signal } = closed
    const fail = (error?: unknown) => setState(({ snapshots }) => ({ snapshots, error }))
    const onConnected = (isConnected: boolean) => fail(isConnected ? undefined : new TypeError('not connected'))
    const follow = async () => {
      for await (const snapshot of api.durable.streamDurableHealth({}, { signal, onConnected })) {
        setState(({ snapshots }) => ({ snapshots: [...snapshots, snapshot].slice(-MAX_SNAPSHOTS) }))
      }
    }
    follow().catch((error) => fail(error instanceof ApiError && error.status === 403 ? new Error(REFUSED) : error))
    return () => closed.abort()
  }, [])
  return { error: undefined, ...state }
}

const WIDTH = 600
const HEIGHT = 120

function Chart({ snapshots }: { snapshots: DurableSnapshot[] }): VNode {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const most = Math.max(1, ...snapshots.flatMap(({ health }) => LINES.map(({ read }) => read(health) ?? 0)))
  const x = (ts: string) => Math.max(0, WIDTH * (1 - (now - Date.parse(ts)) / SHOWN_MS))
  const y = (value: number) => HEIGHT - 2 - (HEIGHT - 4) * (value / most)
  // A number stays until the next snapshot.
  const pathOf = (read: (health: DurableHealth) => number | null) =>
    snapshots.map(({ ts, health }, index) => {
      const at = y(read(health) ?? 0)
      return index === 0 ? `M${x(ts)} ${at}` : `H${x(ts)}V${at}`
    })
  return html`<figure class="chart">
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label="The last ten minutes; the numbers are in the table">
      ${LINES.map(({ name, className, read }) => html`<path key=${name} class=${className} d=${`${pathOf(read).join('')}H${WIDTH}`} />`)}
    </svg>
    <figcaption class="quiet">Since this page was opened, ten minutes at most; from 0 to ${most.toLocaleString()}</figcaption>
  </figure>`
}
