import type { Budget } from 'agent-session-client'
import { readPages } from '../../load.ts'
import type { Option } from '../../parts/choice.ts'
import type { Field } from '../../parts/form.ts'
import { api, organization } from '../../service.ts'

export type Scope = Budget['scope']

/** Scopes of budgets, and how a budget names the one thing that it is for. */
export const SCOPES: Record<Scope, { title: string; read?(budget: Budget): string | null | undefined }> = {
  organization: { title: 'The organization' },
  agent: { title: 'Agent', read: ({ agent_id }) => agent_id },
  user: { title: 'Person', read: ({ user_id }) => user_id },
  api_key: { title: 'API key', read: ({ api_key_id }) => api_key_id },
  session: { title: 'Session', read: ({ session_id }) => session_id },
  turn: { title: 'Run', read: ({ turn_id }) => turn_id },
}

/** Returns the titles of things by their names. */
export const titlesOf = (things: Record<string, { title: string }>): Record<string, string> =>
  Object.fromEntries(Object.entries(things).map(([key, { title }]) => [key, title]))

const readUsers = async (): Promise<Option[]> => {
  const members = await readPages((part) => api.organizations.listMembers({ org: organization.value, ...part }))
  return members.map(({ user_id, name, email }) => ({ value: user_id, label: name ? `${name} (${email})` : email }))
}
const readKeys = async (): Promise<Option[]> =>
  (await api.auth.listApiKeys()).data.map(({ id, name }) => ({ value: id, label: name }))

/** Returns the names of people and of the user's own API keys by their ids, if budgets of these scopes need them. */
export async function readScopeNames(scopes: Scope[]): Promise<Map<string, string>> {
  const found = await Promise.all([
    scopes.includes('user') ? readUsers() : [],
    scopes.includes('api_key') ? readKeys() : [],
  ])
  return new Map(found.flat().map(({ value, label }) => [value, label]))
}

/** Returns the entry that names the thing of a scope. */
export async function scopeField(scope: string): Promise<Field | undefined> {
  const choice = (name: string, label: string, options: Option[]): Field => ({
    name,
    label,
    kind: 'choice',
    isRequired: true,
    options,
  })
  switch (scope) {
    case 'agent':
      return { name: 'agent_id', label: 'Agent', kind: 'agent', isRequired: true }
    case 'user':
      return choice('user_id', 'Person', await readUsers())
    case 'api_key':
      return choice('api_key_id', 'API key', await readKeys())
    case 'session':
      return { name: 'session_id', label: 'Session', kind: 'session', isRequired: true }
    default:
      return undefined
  }
}
