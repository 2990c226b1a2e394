import type { ServerContext } from '@modelcontextprotocol/server'
import type { Context } from 'koa'
import type { Deps } from '../../../domain/deps.ts'
import type { Credential } from '../../../domain/identity/auth/caller.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import type { SseStreams } from '../../http/sse.ts'

/** One request to /v1/mcp, with its authenticated caller. */
export type Face = {
  deps: Deps
  streams: SseStreams
  ctx: Context
  actor: Actor
  credential: Credential | undefined
  idempotencyKey: string | undefined
}

/** The request as the library shows it to a tool. */
export type ToolRequest = ServerContext['mcpReq']
