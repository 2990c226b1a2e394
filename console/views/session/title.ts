import type { Session } from 'agent-session-client'

/** Returns the name of a session: its title, or its first message. */
export const titleOf = ({ title, preview }: Pick<Session, 'title' | 'preview'>): string =>
  title || preview || 'Untitled session'
