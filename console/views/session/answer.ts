import { CallArguments } from '../../parts/call/arguments.ts'
import { JsonSwitch } from '../../parts/call/body.ts'
import { Form, type Values } from '../../parts/form.ts'
import { LongText } from '../../parts/long-text.ts'
import { ActionButton } from '../../parts/page.ts'
import { html, useId, useState, type VNode } from '../../ui.ts'
import { type Asking, questionIn } from './asked.ts'
import { areFew, Options } from './question.ts'

/** Answers besides a text. They are for developers, as the JSON of the call is. */
const WAYS = [
  { way: 'json', title: 'Answer as JSON', label: 'Your answer as JSON' },
  { way: 'failure', title: 'Report a failure', label: 'What went wrong?' },
] as const

/** Answer of a person to the call of a client's tool: a form of the question that its arguments hold. */
export function Answer({ id, call, submit }: Asking): VNode {
  const [way, setWay] = useState<'text' | (typeof WAYS)[number]['way']>('text')
  const group = useId()
  const { name, arguments: given = {} } = call
  const { text, about, options, others } = questionIn(given)
  const isFew = areFew(options)
  const label = WAYS.find((one) => one.way === way)?.label ?? 'Your answer'
  const isText = way === 'text'
  const isChosen = isText && !isFew
  const fields = [
    ...(isChosen ? [{ name: 'option', label: 'Your choice', kind: 'choice', options, none: 'In my own words' }] : []),
    { name: 'result', label, kind: way === 'json' ? 'json' : 'longtext', rows: 3, isRequired: !isChosen },
  ]
  const send = ({ option, result }: Values) => {
    const answer = result ?? option
    if (isChosen && !answer) throw new Error('Choose an answer, or write one.')
    return submit(way === 'failure' ? { error: String(answer) } : { result: answer })
  }
  return html`
    <${JsonSwitch} isOn=${!isText} onSwitch=${(isOn: boolean) => setWay(isOn ? 'json' : 'text')} />
    ${
      isText
        ? html`${text && html`<p class="asked" id=${id} dir="auto">${text}</p>`}
          ${about && html`<p dir="auto">${about}</p>`}
          <${CallArguments} name=${name} given=${others} />
          ${options.length > 0 && isFew && html`<${Options} options=${options} pick=${(result: string) => submit({ result })} />`}`
        : html`<${LongText} text=${JSON.stringify(given, null, 2)} label=${`Arguments of ${name}`} />
          <fieldset class="field"><legend class="unseen">Kind of answer</legend>${WAYS.map(
            (
              one,
            ) => html`<label key=${one.way} class="check"><input type="radio" name=${group} checked=${one.way === way}
              onChange=${() => setWay(one.way)} />${one.title}</label>`,
          )}</fieldset>`
    }
    <${Form} fields=${fields} action=${way === 'failure' ? 'Report' : 'Answer'} onSubmit=${send} />
    ${isText && html`<div class="actions"><${ActionButton} className="ghost" run=${() => submit({ error: 'The user declined to answer.' })}>Decline<//></div>`}`
}
