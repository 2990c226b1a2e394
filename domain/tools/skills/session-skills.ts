/** Skill that a session uses, with its directory among the session's files. */
export type SessionSkill = { name: string; description: string; path: string }

/** Skill with the text of its SKILL.md below the front matter, and the paths of its other files, up to a limit. */
export type LoadedSkill = SessionSkill & { body: string; files: string[]; hasMoreFiles: boolean }

/** The active skills that a session or its agent names, as a tool call reads them. */
export type SessionSkills = {
  /** Lists them by name. */
  list(): Promise<SessionSkill[]>
  /** Reads one. Undefined when the session does not use it. */
  read(name: string): Promise<LoadedSkill | undefined>
}
