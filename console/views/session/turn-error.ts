import { link } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'

type Advice = { text: string; title?: string; place?: string }

/** Errors of providers that are about the key. */
const KEY = /\b(401|403)\b|api.?key|unauthori[sz]ed|authenticat|credential/i

/** Returns what to do about a failed turn. */
function adviceOf(code: string | undefined, error: string): Advice | undefined {
  switch (code) {
    case 'llm_error':
      return KEY.test(error)
        ? { text: 'The provider did not accept the key.', title: 'Check the provider', place: link('llm-providers') }
        : { text: 'Try again, or look at the provider.', title: 'Providers', place: link('llm-providers') }
    case 'no_model':
      return { text: 'Choose another model.', title: 'Models', place: link('llm-models') }
    case 'price_unknown':
      return { text: 'A budget in USD needs a model with a price.', title: 'Models', place: link('llm-models') }
    case 'budget_exceeded':
      return { text: 'Raise the budget, or wait for its next period.', title: 'Costs', place: link('costs') }
    case 'max_iterations':
    case 'max_tool_calls':
    case 'max_output_tokens':
    case 'turn_too_old':
      return { text: 'Divide the task, or raise the limits of the agent with the API.' }
    case 'answer_too_long':
    case 'too_many_tool_calls':
      return { text: 'Ask for less at once.' }
    case 'output_invalid':
      return { text: 'Say more about the output in the prompt, or loosen its schema with the API.' }
    case 'timeout':
      return { text: 'A step took too long. Try again.' }
    default:
      return undefined
  }
}

type Props = { code: string | undefined; error: string }

/** Sentence that says what to do about a failed turn, with a link to where it is done. */
export function TurnAdvice({ code, error }: Props): VNode | null {
  const advice = adviceOf(code, error)
  if (advice === undefined) return null
  const { text, title, place } = advice
  return html`<span class="advice">${text}${place && html` <a href=${place}>${title}</a>`}</span>`
}
