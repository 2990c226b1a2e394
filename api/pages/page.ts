import type Router from '@koa/router'

/** Page of this server, with one script and an optional style. `policy` is its Content-Security-Policy. */
export type Page = { html: string; script: string; style?: string; policy: string }

/** Serves a page at `/<name>`, and what it links to: `<name>/start.js` and `<name>/style.css`. */
export function addPage(router: Router, name: string, { html, script, style, policy }: Page): void {
  router.get(`/${name}`, (ctx) => {
    // The page's links are relative to its folder.
    if (ctx.path.endsWith('/')) return ctx.redirect(`../${name}`)
    ctx.set('Content-Security-Policy', policy)
    ctx.type = 'text/html'
    ctx.body = html
  })
  router.get(`/${name}/start.js`, (ctx) => {
    ctx.type = 'text/javascript'
    ctx.body = script
  })
  if (style === undefined) return
  router.get(`/${name}/style.css`, (ctx) => {
    ctx.type = 'text/css'
    ctx.body = style
  })
}
