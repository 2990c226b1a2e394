import type { Capability } from '../capability.ts'

const comingSoon = (fields: Omit<Capability, 'status' | 'tools' | 'dependencies' | 'features'> & Partial<Capability>) =>
  ({ dependencies: [], features: [], ...fields, status: 'coming_soon', tools: [] }) satisfies Capability

export const agentInstructions = comingSoon({
  id: 'agent_instructions',
  name: 'Agent instructions',
  description: "Puts the AGENTS.md of the session's files into the prompt.",
  category: 'files',
  icon: 'file-text',
})

export const sessionFileSystem = comingSoon({
  id: 'session_file_system',
  name: 'File system',
  description: 'Gives each session files that the agent can read, write and search.',
  category: 'files',
  icon: 'folder',
  features: ['file_system'],
})

export const sessionStorage = comingSoon({
  id: 'session_storage',
  name: 'Storage',
  description: 'Gives each session values and secrets by name.',
  category: 'data',
  icon: 'key',
  features: ['secrets', 'key_value'],
})

export const sessionSqlDatabase = comingSoon({
  id: 'session_sql_database',
  name: 'SQL database',
  description: 'Gives each session SQLite databases.',
  category: 'data',
  icon: 'database',
  features: ['sql_database'],
})

export const sessionSchedule = comingSoon({
  id: 'session_schedule',
  name: 'Schedules',
  description: 'Lets the agent run a message in this session later, once or again and again.',
  category: 'productivity',
  icon: 'calendar-clock',
  features: ['schedules'],
})

export const virtualBash = comingSoon({
  id: 'virtual_bash',
  name: 'Bash',
  description: "Runs bash over the session's files, without a real machine.",
  category: 'files',
  icon: 'terminal',
  dependencies: ['session_file_system'],
})

export const skills = comingSoon({
  id: 'skills',
  name: 'Skills',
  description: 'Lets the agent find and load skills.',
  category: 'productivity',
  icon: 'graduation-cap',
  dependencies: ['session_file_system'],
})

export const sampleData = comingSoon({
  id: 'sample_data',
  name: 'Sample data',
  description: 'Puts sample files into each new session.',
  category: 'testing',
  icon: 'table',
  dependencies: ['session_file_system'],
})

export const research = comingSoon({
  id: 'research',
  name: 'Research',
  description: 'Lets the agent research a question over many sources.',
  category: 'web',
  icon: 'search',
})
