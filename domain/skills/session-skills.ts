/** Skill that a session uses, with its directory among the session's files. */
export type SessionSkill = { name: string; description: string; path: string }

/** The active skills that a session or its agent names, as a tool call reads them. */
export type SessionSkills = {
  /** Lists them by name. */
  list(): Promise<SessionSkill[]>
  /** Reads one with the text of its SKILL.md below the front matter. Undefined when the session does not use it. */
  read(name: string): Promise<(SessionSkill & { body: string; files: string[] }) | undefined>
}
