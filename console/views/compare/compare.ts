import { useAgentNames } from '../../parts/agent-select.ts'
import { Badge } from '../../parts/badge.ts'
import { compareLink, type RunPlace } from '../../parts/compare-link.ts'
import { Empty } from '../../parts/empty.ts'
import { Page, Problem } from '../../parts/page.ts'
import { titleOf } from '../../parts/session-title.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { subjectOf } from '../../parts/subject.ts'
import { link, route } from '../../router.ts'
import type { VNode } from '../../ui.ts'
import { html, useMemo } from '../../ui.ts'
import type { Call } from '../session/conversation.ts'
import { changedWords, type Piece } from './changed-words.ts'
import { factsOf } from './facts.ts'
import { type Run, useRun } from './use-run.ts'

const SIDES = ['A', 'B'] as const
/** Characters of a text that are compared. */
const MAX_CHARACTERS = 50_000

/** Two runs side by side at `#/compare?a=<session>/<turn>&b=<session>/<turn>`. */
export function View(): VNode {
  const { query } = route.value
  const [a, b] = [placeOf(query.get('a')), placeOf(query.get('b'))]
  const back = { title: 'Runs', href: link('runs') }
  if (a === undefined || b === undefined) {
    const action = html`<a class="button primary" href=${link('runs')}>Open runs</a>`
    return html`<${Page} title="Compare runs" back=${back}><${Empty} icon="compare" title="Choose two runs"
      about="In Runs, choose “Compare with…” in the menus of two runs." action=${action} /><//>`
  }
  const swap = html`<a class="button" href=${compareLink(b, a)}>Swap</a>`
  return html`<${Page} title="Compare runs" back=${back} actions=${swap}><${Comparison} key=${`${a.turnId} ${b.turnId}`} a=${a} b=${b} /><//>`
}

function placeOf(text: string | null): RunPlace | undefined {
  const [sessionId, turnId] = (text ?? '').split('/')
  return sessionId && turnId ? { sessionId, turnId } : undefined
}

function Comparison({ a, b }: { a: RunPlace; b: RunPlace }): VNode {
  const runs = [useRun(a, true), useRun(b, false)] as const
  const [left, right] = [runs[0].told, runs[1].told]
  const answers = useMemo(() => changesOf(left.answer, right.answer), [left.answer, right.answer])
  const messages = useMemo(() => changesOf(left.message, right.message), [left.message, right.message])
  const calls = useMemo(() => onlyHere(left.calls, right.calls), [left.calls, right.calls])
  const heads = runs.map((run, index) => html`<${Head} key=${index} side=${SIDES[index]} run=${run} />`)
  // With one of them, everything would seem changed.
  if (runs.some(({ turn }) => turn === undefined)) return html`<div class="compared">${heads}</div>`
  return html`<div class="compared">
    ${heads}
    <${Facts} runs=${runs} />
    <h2>Message</h2>
    ${messages.map((pieces, index) => html`<${Text} key=${index} side=${SIDES[index]} name="Message" pieces=${pieces} />`)}
    <h2>Answer</h2>
    ${answers.map((pieces, index) => html`<${Text} key=${index} side=${SIDES[index]} name="Answer" pieces=${pieces} />`)}
    <h2>Tools</h2>
    ${runs.map(({ told }, index) => html`<${Calls} key=${index} side=${SIDES[index]} calls=${told.calls} only=${calls[index]} />`)}
  </div>`
}

function Head({ side, run: { turn, session, error } }: { side: string; run: Run }): VNode {
  return html`<section aria-label=${`Run ${side}`} class="compared-head">
    <p class="label">Run ${side}</p>
    <${Problem} error=${error} />
    ${turn === undefined && error === undefined && html`<${Skeleton} rows=${2} />`}
    ${
      turn &&
      html`<p><a class="clipped" href=${`${link('sessions', turn.session_id)}?turn=${turn.id}`} dir="auto">${session ? titleOf(session) : 'Session'}</a></p>
      <p><${Badge} status=${turn.status} /> <a href=${link('sessions', turn.session_id, 'turns', turn.id)}>Timeline</a></p>`
    }
  </section>`
}

/** Table of what can be measured. Rows that differ are marked. */
function Facts({ runs }: { runs: readonly [Run, Run] }): VNode {
  const nameOf = useAgentNames(runs.map(({ turn }) => turn?.agent_id))
  const facts = factsOf(runs, nameOf)
  return html`<table class="rows compared-facts">
    <thead><tr><th scope="col"><span class="unseen">Fact</span></th>${SIDES.map((side) => html`<th key=${side} scope="col">Run ${side}</th>`)}
      <th scope="col">Difference</th></tr></thead>
    <tbody>${facts.map(
      ({ name, a, b, difference }) => html`<tr key=${name} class=${difference ? 'differs' : ''}>
        <th scope="row">${name}</th><td dir="auto">${a}</td><td dir="auto">${b}</td><td>${difference}</td></tr>`,
    )}</tbody>
  </table>`
}

function changesOf(a: string, b: string): [Piece[], Piece[]] {
  const changed = changedWords(a.slice(0, MAX_CHARACTERS), b.slice(0, MAX_CHARACTERS))
  return [changed.a, changed.b]
}

type TextProps = { side: 'A' | 'B'; name: string; pieces: Piece[] }

/** Text of a side. Words that the other side lacks are marked. */
function Text({ side, name, pieces }: TextProps): VNode {
  const isNothing = pieces.length === 0
  const length = pieces.reduce((sum, { text }) => sum + text.length, 0)
  const mark = ({ text, isChanged }: Piece) =>
    isChanged ? (side === 'A' ? html`<del>${text}</del>` : html`<ins>${text}</ins>`) : text
  return html`<section aria-label=${`${name} of run ${side}`}>
    <p class="label">Run ${side}</p>
    ${isNothing ? html`<p class="quiet">No text.</p>` : html`<div class="text compared-text" dir="auto" tabindex="0" role="group" aria-label=${`${name} of run ${side}`}>${pieces.map(mark)}</div>`}
    ${length >= MAX_CHARACTERS && html`<p class="quiet">Only the first ${MAX_CHARACTERS.toLocaleString()} characters are compared.</p>`}
  </section>`
}

function Calls({ side, calls, only }: { side: 'A' | 'B'; calls: Call[]; only: Set<Call> | undefined }): VNode {
  return html`<section aria-label=${`Tools of run ${side}`}>
    <p class="label">Run ${side}</p>
    ${calls.length === 0 && html`<p class="quiet">No tools called.</p>`}
    <ol class="compared-calls">${calls.map((call, index) => {
      const isOnly = only?.has(call) ?? false
      return html`<li key=${index} class=${isOnly ? (side === 'A' ? 'removed' : 'added') : ''}><span dir="auto">${call.title}</span>
        <code class="clipped" dir="auto">${subjectOf(call.arguments) || argumentsOf(call)}</code><${Badge} status=${call.status} />${isOnly && html`<span class="quiet">only here</span>`}</li>`
    })}</ol>
  </section>`
}

const MAX_ARGUMENTS = 200
const argumentsOf = (call: Call): string =>
  JSON.stringify(call.arguments ?? {})
    .slice(0, MAX_ARGUMENTS)
    .toWellFormed()

/** Returns the calls of each side that the other lacks: the same tool with the same arguments. */
function onlyHere(a: Call[], b: Call[]): [Set<Call>, Set<Call>] {
  const keyOf = (call: Call) => `${call.name} ${JSON.stringify(call.arguments)}`
  const without = (calls: Call[], others: Call[]) => {
    const left = others.map(keyOf)
    return calls.filter((call) => {
      const at = left.indexOf(keyOf(call))
      if (at >= 0) left.splice(at, 1)
      return at < 0
    })
  }
  return [new Set(without(a, b)), new Set(without(b, a))]
}
