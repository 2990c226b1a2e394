import { Tabs } from '../parts/tabs.ts'
import { html, type VNode } from '../ui.ts'

/** Links between models and their providers. */
export const ModelTabs = (): VNode =>
  html`<${Tabs} label="Models" places=${{ 'llm-models': 'Models', 'llm-providers': 'Providers' }} />`
