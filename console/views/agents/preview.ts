import type { AgentPreviewResponse } from 'agent-session-client'
import { LongText } from '../../parts/long-text.ts'
import { Quiet } from '../../parts/page.ts'
import { ToolDetails } from '../../parts/tool-details.ts'
import { html, type VNode } from '../../ui.ts'

/** Input that a model would get. */
export const Preview = ({ preview: { system_prompt, tools } }: { preview: AgentPreviewResponse }): VNode => html`
  <${LongText} text=${system_prompt} label="Prompt" />
  ${tools.length === 0 && html`<${Quiet}>No tools.<//>`}
  ${tools.map((tool) => html`<${ToolDetails} key=${tool.name} tool=${tool} />`)}`
