/** Skill that a session uses, with its directory among the session's files. */
export type SessionSkill = { name: string; description: string; path: string }

/** Skill with the text of its SKILL.md below the front matter, and the paths of its other files, up to a limit. */
export type LoadedSkill = SessionSkill & { body: string; files: string[]; hasMoreFiles: boolean }

/** The active skills of a session or its agent, as tool calls read them. */
export type SessionSkills = {
  /** Lists them by name. */
  list(): Promise<SessionSkill[]>
  /** Reads one. Undefined if the session does not use it. */
  read(name: string): Promise<LoadedSkill | undefined>
}
