import { html, useEffect, useState, type VNode } from '../ui.ts'
import { Page } from './page.ts'
import { Again, Skeleton } from './skeleton.ts'

/** Page of a view that is still loading. Its title is not a heading, because the view's heading takes the focus. */
export const Loading = ({ title }: { title: string }): VNode =>
  html`<main id="main" aria-busy="true"><header class="head"><div class="head-row"><p class="loading-title">${title}</p></div></header><${Skeleton} /></main>`

/** Loads the module of a view, which exports it as `View`. */
type Load = () => Promise<{ View: (props: object) => VNode }>
const views = new Map<Load, (props: object) => VNode>()

/** View whose module is loaded when it is first shown. */
export function Lazy({ title, load, ...props }: { title: string; load: Load }): VNode {
  const [, setLoaded] = useState(views.size)
  const [isLost, setLost] = useState(false)
  const View = views.get(load)
  useEffect(() => {
    if (View !== undefined) return
    load().then(
      (module) => {
        views.set(load, module.View)
        setLoaded(views.size)
      },
      () => setLost(true),
    )
  }, [load])
  if (View !== undefined) return html`<${View} ...${props} />`
  if (!isLost) return html`<${Loading} title=${title} />`
  return html`<${Page} title=${title}>
    <p class="problem" role="alert">This page could not be loaded.</p>
    <${Again} />
  <//>`
}
