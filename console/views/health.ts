import { ApiError, type DurableHealth, type DurableSnapshot } from 'agent-session-client'
import { Badge } from '../parts/badge.ts'
import { Page, Problem, Quiet } from '../parts/page.ts'
import { Skeleton } from '../parts/skeleton.ts'
import { link } from '../router.ts'
import { abortWhenHidden, untilSeen } from '../seen.ts'
import { api } from '../service.ts'
import { html, useEffect, useState, type VNode } from '../ui.ts'

const REFUSED = 'Only administrators of the default organization see the health of the service.'
/** Number of kept snapshots, and the period of the chart. */
const MAX_SNAPSHOTS = 1000
const SHOWN_MS = 10 * 60_000

const STATUS: Record<DurableHealth['status'], { word: string; tone: string; icon: string }> = {
  healthy: { word: 'Healthy', tone: 'good', icon: 'check' },
  warning: { word: 'Needs attention', tone: 'wait', icon: 'alert' },
  degraded: { word: 'Degraded', tone: 'bad', icon: 'alert' },
}

const runs = (query: string): string => `${link('runs')}?${query}`

type Line = { name: string; className: string; href: string; read(health: DurableHealth): number | null }

const LINES: Line[] = [
  {
    name: 'Unfinished runs',
    className: 'line-1',
    href: runs('status=queued&status=active&status=waiting'),
    read: ({ turns }) => turns.running,
  },
  {
    name: 'Tasks waiting for a worker',
    className: 'line-2',
    href: runs('status=queued'),
    read: ({ task_queue_backlog }) => task_queue_backlog,
  },
  {
    name: 'Model calls being retried',
    className: 'line-3',
    href: runs('status=active'),
    read: ({ turns }) => turns.retrying,
  },
]

const FAILED = 'status=failed&last=1h'

/** Health of durable execution, live. */
export function View(): VNode {
  const { snapshots, error } = useSnapshots()
  const health = snapshots.at(-1)?.health
  const badge =
    health && html`<span role="status"><${Badge} status=${health.status} ...${STATUS[health.status] ?? {}} /></span>`
  return html`<${Page} title="Health" badge=${badge}>
    <${Problem} error=${error} />
    ${health === undefined && error === undefined && html`<${Skeleton} />`}
    ${
      health &&
      html`<${Summary} health=${health} />
      <${Chart} snapshots=${snapshots} />
      <table class="rows numbers"><thead><tr><th scope="col">Now</th><th scope="col" class="number">Number</th></tr></thead><tbody>
        ${LINES.map(
          ({ name, className, href, read }) =>
            html`<${Row} key=${name} name=${name} className=${className} href=${href} value=${read(health)} />`,
        )}
        <${Row} name="Stalled runs" href=${runs('stalled=true')} value=${health.turns.stalled ?? null} isBad />
        <${Row} name="Runs failed in the last hour" href=${runs(FAILED)} value=${health.turns.failed} isBad />
        <${Row} name="Workers" value=${health.workers} />
        <${Row} name="Schedules running" href=${link('schedules')} value=${health.executions.running} />
        <${Row} name="Schedules failed in the last hour" href=${link('schedules')} value=${health.executions.failed} isBad />
      </tbody></table>
      <${Quiet}>The numbers are of all organizations. The links lead to the runs and schedules of yours.<//>`
    }
  <//>`
}

/** Returns a number and the word that fits it. */
const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString()} ${count === 1 ? one : many}`

/** Says what is wrong, also when the service itself is well. */
function Summary({ health: { status, reasons, turns, executions } }: { health: DurableHealth }): VNode {
  const stalled = turns.stalled ?? 0
  const failed = turns.failed ?? 0
  const schedules = executions.failed ?? 0
  const troubles = [
    failed > 0 && html`<a href=${runs(FAILED)}>${counted(failed, 'run', 'runs')}</a> failed in the last hour. `,
    stalled > 0 && html`<a href=${runs('stalled=true')}>${counted(stalled, 'run has', 'runs have')} stalled</a>. `,
    schedules > 0 &&
      html`<a href=${link('schedules')}>${counted(schedules, 'schedule', 'schedules')}</a> failed in the last hour. `,
  ].filter(Boolean)
  const isFine = status === 'healthy' && troubles.length === 0
  return html`<p>${isFine ? 'Everything works.' : `${reasons.join(' ')} `}${status === 'healthy' && troubles.length > 0 && 'The service works, but '}${troubles}</p>`
}

type RowProps = { name: string; className?: string; href?: string; value: number | null; isBad?: boolean }

/** Number, which leads to the runs or schedules that it counts. */
function Row({ name, className, href, value, isBad = false }: RowProps): VNode {
  const text = value?.toLocaleString() ?? 'unknown'
  return html`<tr><th scope="row">${className && html`<svg class=${`key ${className}`} width="16" height="8" aria-hidden="true"><path d="M0 4H16" /></svg> `}${href ? html`<a href=${href}>${name}</a>` : name}</th>
    <td class=${isBad && (value ?? 0) > 0 ? 'number problem' : 'number'}>${text}</td></tr>`
}

/** Follows the stream of snapshots. */
function useSnapshots(): { snapshots: DurableSnapshot[]; error: unknown } {
  const [state, setState] = useState<{ snapshots: DurableSnapshot[]; error?: unknown }>({ snapshots: [] })
  useEffect(() => {
    const closed = new AbortController()
    const fail = (error?: unknown) => setState(({ snapshots }) => ({ snapshots, error }))
    const onConnected = (isConnected: boolean) => fail(isConnected ? undefined : new TypeError('not connected'))
    const follow = async () => {
      while (!closed.signal.aborted) {
        const { signal } = abortWhenHidden(closed.signal)
        for await (const snapshot of api.durable.streamDurableHealth({}, { signal, onConnected })) {
          setState(({ snapshots }) => ({ snapshots: [...snapshots, snapshot].slice(-MAX_SNAPSHOTS) }))
        }
        if (!signal.aborted) return
        await untilSeen(closed.signal)
      }
    }
    follow().catch((error) => fail(error instanceof ApiError && error.status === 403 ? new Error(REFUSED) : error))
    return () => closed.abort()
  }, [])
  return { error: undefined, ...state }
}

const WIDTH = 600
const HEIGHT = 120
const MINUTE_MS = 60_000

/** Lines of the time that this page has seen, up to ten minutes. */
function Chart({ snapshots }: { snapshots: DurableSnapshot[] }): VNode {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const most = Math.max(0, ...snapshots.flatMap(({ health }) => LINES.map(({ read }) => read(health) ?? 0)))
  if (most === 0)
    return html`<p class="quiet chart-none">Nothing has run since this page was opened. Runs are drawn here as they come.</p>`
  const seenMs = now - Date.parse(snapshots[0]?.ts ?? '')
  const shownMs = Math.min(SHOWN_MS, Math.max(MINUTE_MS, Math.ceil(seenMs / MINUTE_MS) * MINUTE_MS))
  const x = (ts: string) => Math.max(0, WIDTH * (1 - (now - Date.parse(ts)) / shownMs))
  const y = (value: number) => HEIGHT - 2 - (HEIGHT - 4) * (value / most)
  // A number stays until the next snapshot.
  const pathOf = (read: (health: DurableHealth) => number | null) =>
    snapshots.map(({ ts, health }, index) => {
      const at = y(read(health) ?? 0)
      return index === 0 ? `M${x(ts)} ${at}` : `H${x(ts)}V${at}`
    })
  return html`<figure class="chart live">
    <div class="chart-scale quiet" aria-hidden="true"><span>${most.toLocaleString()}</span><span>0</span></div>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`The last ${counted(shownMs / MINUTE_MS, 'minute', 'minutes')}; the numbers are in the table`}>
      ${LINES.map(({ name, className, read }) => html`<path key=${name} class=${className} d=${`${pathOf(read).join('')}H${WIDTH}`} />`)}
    </svg>
    <div class="chart-axis quiet" aria-hidden="true"><span>${shownMs / MINUTE_MS} min ago</span><span>now</span></div>
  </figure>`
}
