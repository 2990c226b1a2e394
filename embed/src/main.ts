import { AgentChat } from './element.ts'

export { AgentChat }

// A page may load the module twice, from two addresses.
if (customElements.get('agent-chat') === undefined) customElements.define('agent-chat', AgentChat)

declare global {
  interface HTMLElementTagNameMap {
    'agent-chat': AgentChat
  }
}
