import type { ToolDefinition } from 'agent-session-client'
import { type ComponentChildren, html, type VNode } from '../ui.ts'
import { LongText } from './long-text.ts'

type Props = { tool: Pick<ToolDefinition, 'name' | 'description' | 'parameters'>; children?: ComponentChildren }

/** Tool as models see it, collapsed at first. */
export const ToolDetails = ({ tool: { name, description, parameters }, children }: Props): VNode => html`<details>
  <summary><code>${name}</code> ${children} <span class="quiet" dir="auto">${description}</span></summary>
  <${LongText} text=${JSON.stringify(parameters, null, 2)} label=${`Parameters of ${name}`} />
</details>`
