import type { InputContentPart } from 'agent-session-client'

/** Message on its way to a session: it may or may not have been accepted when the page was left. */
export type Unsettled = { session: string; key: string; content: InputContentPart[] }
type Stored = { session?: string; unsettled?: Unsettled[] }

/** Session of this tab and agent, and the messages whose acceptance is not known yet, also of other sessions. */
export type Memory = {
  session(): string | undefined
  keepSession(id: string): void
  unsettled(): Unsettled[]
  keep(message: Unsettled): void
  settle(key: string): void
  forget(): void
}

/** Keeps them in sessionStorage. Where the browser blocks it, a reload begins a new chat. */
export function openMemory(place: string): Memory {
  const read = (): Stored => {
    try {
      return JSON.parse(sessionStorage.getItem(place) ?? '{}')
    } catch {
      return {}
    }
  }
  const write = (change: Stored) => {
    try {
      sessionStorage.setItem(place, JSON.stringify({ ...read(), ...change }))
    } catch {
      // Blocked, or full.
    }
  }
  const unsettled = () => read().unsettled ?? []
  const without = (key: string) => unsettled().filter((one) => one.key !== key)
  return {
    session: () => read().session,
    keepSession: (session) => write({ session }),
    unsettled,
    keep: (message) => write({ unsettled: [...without(message.key), message] }),
    settle: (key) => write({ unsettled: without(key) }),
    forget: () => {
      try {
        sessionStorage.removeItem(place)
      } catch {
        // Blocked.
      }
    },
  }
}
