import type { AgentPreviewResponse } from 'agent-session-client'
import { LongText } from '../../parts/long-text.ts'
import { Quiet } from '../../parts/page.ts'
import { ToolDetails } from '../../parts/tool-details.ts'
import { html, useEffect, useRef, type VNode } from '../../ui.ts'

/** Input that a model would get. */
export function Preview({ preview }: { preview: AgentPreviewResponse }): VNode {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    heading.current?.focus({ preventScroll: true })
    heading.current?.scrollIntoView({ block: 'start' })
  }, [preview])
  const { system_prompt, tools } = preview
  return html`<section>
    <h2 tabindex="-1" ref=${heading}>What the model gets</h2>
    <${LongText} text=${system_prompt} label="Prompt" />
    ${tools.length === 0 && html`<${Quiet}>No tools.<//>`}
    ${tools.map((tool) => html`<${ToolDetails} key=${tool.name} tool=${tool} />`)}
  </section>`
}
