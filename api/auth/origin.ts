import ipaddr from 'ipaddr.js'
import type { Context } from 'koa'
import type { Origin } from '../../domain/kit/actor.ts'

/** Returns where a request comes from, as the audit log names it. */
export const originOf = (ctx: Context): Origin => ({
  address: addressOf(ctx).toString(),
  requestId: ctx.state.requestId,
})

/** Returns the IP address of a request, by the trusted proxies if there are any. */
export function addressOf(ctx: Context): ipaddr.IPv4 | ipaddr.IPv6 {
  const ip = withoutPort(ctx.ip)
  return ipaddr.process(ipaddr.isValid(ip) ? ip : (ctx.req.socket.remoteAddress ?? '0.0.0.0'))
}

/** Removes the port, which some proxies append to the address. */
const withoutPort = (ip: string): string => ip.replace(/^\[(.+)\](:\d+)?$|^(\d+(?:\.\d+){3}):\d+$/, '$1$3')
