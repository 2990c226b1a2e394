import type Router from '@koa/router'

/** Page of this server, with one script of its own. `policy` is its Content-Security-Policy. */
export type Page = { html: string; script: string; policy: string }

/** Serves a page at `/<name>`, and its script, to which it links as `<name>/start.js`. */
export function addPage(router: Router, name: string, { html, script, policy }: Page): void {
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
}
