import { takenOver } from '../../parts/takeover.ts'
import { html, type VNode } from '../../ui.ts'
import type { Loss, Span } from './spans.ts'

const HEIGHT = 12
/** Width of the mark at the begin of an attempt, by which a short one can be seen. */
const MARK = 2

type Props = { span: Span; from: number; until: number; now: number }

/** Line of a span in the timeline: lost attempts hatched, the gap after each dashed, and the rest filled. */
export function Track({ span, from, until, now }: Props): VNode {
  const percent = (ms: number) => `${((ms / (until - from)) * 100).toFixed(3)}%`
  const to = span.to ?? Math.max(now, span.from)
  const wentOnAt = span.losses.at(-1)?.until ?? span.from
  const box = (begin: number, end: number) => ({
    x: percent(begin - from),
    width: percent(Math.max(0, end - begin)),
    height: HEIGHT,
  })
  return html`<svg class=${`bar kind-${span.kind} ${span.problem === undefined ? '' : 'bad'}`} width="100%" height=${HEIGHT} aria-hidden="true">
    ${span.losses.map(
      (lost) => html`<rect ...${box(lost.from, lost.to)} rx="2" />
        <rect ...${box(lost.from, lost.to)} class="lost" fill="url(#hatch)" />
        <rect ...${box(lost.from, lost.to)} width=${MARK} />
        <line class="gap" x1=${percent(lost.to - from)} x2=${percent(lost.until - from)} y1=${HEIGHT / 2} y2=${HEIGHT / 2} />`,
    )}
    ${
      (span.losses.length === 0 || to > wentOnAt) &&
      html`<rect ...${box(wentOnAt, to)} rx="2" /><rect ...${box(wentOnAt, to)} width=${MARK} />`
    }
  </svg>`
}

/** Pattern of lost attempts, once on a page. */
export const Hatch = (): VNode => html`<svg class="bar hatch" width="0" height="0" aria-hidden="true">
  <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <line x1="0" y1="0" x2="0" y2="6" />
  </pattern>
</svg>`

/** Number of lost attempts that a span tells of: a step that loses more has lost them for the same reason. */
const TOLD = 3

/** Says why attempts were lost, and who went on. */
export const Losses = ({ losses }: { losses: Loss[] }): VNode =>
  html`${losses
    .slice(-TOLD)
    .map(({ until, takeover }) => html`<span class="loss" key=${until} dir="auto">${takenOver(takeover)}</span>`)}`
