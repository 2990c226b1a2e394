import type Router from '@koa/router'
import { createFileSender } from '../http/compressed.ts'
import { RequestError } from '../http/errors.ts'
import { type ConsoleOptions, readSite, type Site } from './site.ts'

/** Serves the console at `/console`, to which `/` redirects. Its files are read at the first request. */
export function addConsole(router: Router, options: ConsoleOptions): void {
  let site: Promise<Site> | undefined
  const open = () => {
    site ??= readSite(options)
    site.catch(() => {
      site = undefined
    })
    return site
  }
  const send = createFileSender()

  router.get('/console', async (ctx) => {
    // The page's links are relative to its folder.
    if (ctx.path.endsWith('/')) return ctx.redirect('../console')
    const { html, policy } = await open()
    ctx.set('Content-Security-Policy', policy)
    ctx.set('Cache-Control', 'no-cache')
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.type = 'text/html'
    await send(ctx, 'page', Buffer.from(html))
  })
  router.get('/console/files/:name', async (ctx) => {
    const name = String(ctx.params.name)
    const asset = (await open()).assets.get(name)
    if (asset === undefined) throw new RequestError(404, 'The console has no such file; reload the page')
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable')
    ctx.type = asset.type
    await send(ctx, name, asset.content)
  })
}
