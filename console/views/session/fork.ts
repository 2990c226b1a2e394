import type { ForkSessionRequest } from 'agent-session-client'
import { notify } from '../../parts/notice.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { refreshList } from '../sessions/session-list.ts'

/** `crypto.randomUUID` is missing on pages without TLS. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

/** Forks a session, and opens the fork. The answer to a repeated request with the same key is the same fork. */
export async function openFork(session_id: string, body: ForkSessionRequest, key = newKey()): Promise<void> {
  const { session } = await api.sessions.fork({ session_id, ...body }, { headers: { 'Idempotency-Key': key } })
  go(link('sessions', session.id))
  notify('This is a fork. The session before it stays as it was.')
  await refreshList()
}
