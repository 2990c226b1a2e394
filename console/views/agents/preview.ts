import type { AgentPreviewResponse } from 'agent-session-client'
import { LongText } from '../../parts/long-text.ts'
import { Quiet } from '../../parts/page.ts'
import { html, useEffect, useRef, type VNode } from '../../ui.ts'

/** What a model would be given. */
export function Preview({ preview }: { preview: AgentPreviewResponse }): VNode {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [preview])
  const { system_prompt, tools } = preview
  return html`<section>
    <h2 tabindex="-1" ref=${heading}>What the model is given</h2>
    <${LongText} text=${system_prompt} label="Prompt" />
    ${tools.length === 0 && html`<${Quiet}>No tools.<//>`}
    ${tools.map(
      (tool) => html`<details key=${tool.name}>
        <summary><code>${tool.name}</code> <span class="quiet" dir="auto">${tool.description}</span></summary>
        <${LongText} text=${JSON.stringify(tool.parameters, null, 2)} label=${`Parameters of ${tool.name}`} />
      </details>`,
    )}
  </section>`
}
