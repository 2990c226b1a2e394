import type { Json } from './http.ts'
import { type OpenStream, openStream } from './stream.ts'

export type Resume = 'since_id' | 'last_event_id' | 'start'

/** Client of one session that disconnects and reconnects, and keeps the events it received. */
export type ResumingClient = {
  /** Returns all events received since the client last read from the start. */
  received(): Json[]
  /** Connects and resolves with the stream. A status other than 200 means that it was refused. */
  connect(url: string, resume: Resume): Promise<OpenStream>
  /** Disconnects. Also takes effect while `connect` is pending. */
  leave(): void
}

export function createResumingClient(sessionId: string, filter = ''): ResumingClient {
  let past: Json[] = []
  let stream: OpenStream | undefined
  let visit = 0
  const received = () => [...past, ...(stream?.events() ?? [])]
  const leave = () => {
    visit++
    past = received()
    stream?.close()
    stream = undefined
  }
  return {
    received,
    leave,
    connect: async (url, resume) => {
      leave()
      const own = visit
      if (resume === 'start') past = []
      const { query, headers } = cursorOf(past.at(-1)?.id, resume)
      const parameters = [query, filter].filter(Boolean).join('&')
      const opened = await openStream(url, `/v1/sessions/${sessionId}/sse?${parameters}`, { headers })
      if (own === visit && opened.status === 200) stream = opened
      else opened.close()
      return opened
    },
  }
}

function cursorOf(lastId: string | undefined, resume: Resume): { query: string; headers: Record<string, string> } {
  if (lastId === undefined || resume === 'start') return { query: '', headers: {} }
  if (resume === 'since_id') return { query: `since_id=${lastId}`, headers: {} }
  return { query: '', headers: { 'Last-Event-ID': lastId } }
}
