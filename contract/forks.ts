import { z } from 'zod'
import { DateTime, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { SessionId, wireId } from './kit/ids.ts'
import { InputControls, Message, UserMessage } from './messages.ts'
import { OutputSchema } from './output-schema.ts'
import { ForkOrigin, MAX_VERSION, Session, SessionStatus } from './sessions.ts'

/** Maximum number of sessions in a tree. */
export const MAX_TREE = 1000

export const ForkSessionRequest = z
  .object({
    at: z
      .string()
      .regex(/^(?:message|event|turn)_[0-9a-f]{32}$/, {
        error: 'must be the id of a message, an event or a turn of the session',
      })
      .nullish()
      .meta({ description: 'A message, an event or a turn. Default: the turn that ended last.' }),
    message: UserMessage.nullish().meta({
      description: "Edits: the history ends before the user's message of that turn, and this one is posted instead.",
    }),
    again: z.boolean().nullish().meta({
      description:
        "Runs that turn again: the history ends before the user's message of that turn, which is posted again.",
    }),
    controls: InputControls.nullish().meta({
      description: 'Of the posted message. Default: the controls of the message that it replaces.',
    }),
    output_schema: OutputSchema.nullish().meta({
      description: 'Of the posted message. Default: the schema of the message that it replaces.',
    }),
    agent_version: z.int().min(0).max(MAX_VERSION).nullish().meta({
      description:
        'Version of the agent that the next turns run; 0: the newest. Default: the version that the turn ran.',
    }),
    title: textUpTo(2048).nullish(),
    secrets: z
      .boolean()
      .nullish()
      .meta({ description: "Whether the fork gets the session's secrets. Default: false." }),
  })
  .meta({ id: 'ForkSessionRequest' })
export type ForkSessionRequest = z.infer<typeof ForkSessionRequest>

export const ForkedSession = z
  .object({
    session: Session,
    message: Message.nullish().meta({ description: 'The message that was posted, if any.' }),
  })
  .meta({ id: 'ForkedSession' })
export type ForkedSession = z.infer<typeof ForkedSession>

const SessionOfTree = z.object({
  id: wireId('session'),
  title: z.string().nullish(),
  status: SessionStatus,
  forked_from: ForkOrigin.nullish(),
  created_at: DateTime,
})
export const SessionTree = z
  .object({ data: z.array(SessionOfTree) })
  .meta({ id: 'SessionTree', description: `At most ${MAX_TREE} sessions, oldest first.` })
export type SessionTree = z.infer<typeof SessionTree>

const params = z.object({ session_id: SessionId })

export const forkEndpoints = group(
  { tag: 'sessions', path: '/v1/sessions/{session_id}', access: 'member' },
  {
    fork: {
      operationId: 'forkSession',
      method: 'POST',
      at: '/fork',
      summary: 'Makes a session that has the history up to a turn, and goes on from there',
      description:
        'The history ends with the whole turn of `at`, or before it with `message` or `again`. Settings are as they were then. ' +
        'Files, databases and values are, too, if the session keeps snapshots; else they are as they are now, as `data_as_of` says.',
      params,
      body: ForkSessionRequest,
      bodyOptional: true,
      creates: true,
      responses: { 201: ForkedSession },
    },
    tree: {
      operationId: 'getSessionTree',
      method: 'GET',
      at: '/tree',
      summary: 'Lists the session with all forks that go back to the same session',
      params,
      responses: { 200: SessionTree },
    },
  },
)
