import type { Session } from 'agent-session-client'

/** Returns what a session is called: its title, or what was said first. */
export const titleOf = ({ title, preview }: Pick<Session, 'title' | 'preview'>): string =>
  title || preview || 'Untitled session'
