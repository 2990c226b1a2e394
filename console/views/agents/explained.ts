import { html, type VNode } from '../../ui.ts'

const TERMS: [term: string, text: string][] = [
  ['Tool', 'Something that the model may call, such as reading a file. A call runs at once, or asks a person first.'],
  ['Capability', 'Tools that belong together, with what they need: instructions for the model, files, a database.'],
  [
    'Skill',
    'Instructions and files for one kind of task. Only its name and description are in the prompt; the model reads the rest once it needs it.',
  ],
  ['MCP server', 'A program elsewhere whose tools agents may call, over the Model Context Protocol.'],
  ['Client-side tool', 'A tool that runs in your own program. The turn waits until the program sends the result.'],
]

/** Terms of the form, explained in place. */
export const Explained = (): VNode => html`<details class="explained">
  <summary>What is a capability, a tool, a skill, an MCP server?</summary>
  <dl>${TERMS.map(([term, text]) => html`<div key=${term}><dt>${term}</dt><dd>${text}</dd></div>`)}</dl>
</details>`
