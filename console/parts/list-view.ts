import { html, type VNode } from '../ui.ts'
import { type Resource, ResourceView } from './resource.ts'

/** Returns the view of a kind of resource. */
// biome-ignore lint/suspicious/noExplicitAny: resources of all kinds
export const viewOf = (resource: Resource<any>) => (): VNode =>
  html`<${ResourceView} key=${resource.path} resource=${resource} />`
