import type { VNode } from './ui.ts'

/** A view's module exports the view under the name `View`. */
type Module = { View: () => VNode }

export type Place = {
  /** First segment of its addresses. */
  path: string
  title: string
  icon: string
  /** Whether it has no entry of its own in the navigation, but the one named here. */
  under?: string
  load(): Promise<Module>
}

/** Places of the console, in the groups of the navigation. Each is a chunk of its own, named like its module. */
export const GROUPS: { title: string; places: Place[] }[] = [
  {
    title: 'Build',
    places: [
      { path: 'agents', title: 'Agents', icon: 'agent', load: () => import('./views/agents/agents.ts') },
      { path: 'skills', title: 'Skills', icon: 'skill', load: () => import('./views/skills.ts') },
      { path: 'mcp-servers', title: 'MCP servers', icon: 'plug', load: () => import('./views/mcp-servers.ts') },
      { path: 'llm-models', title: 'Models', icon: 'model', load: () => import('./views/llm-models.ts') },
      {
        path: 'llm-providers',
        title: 'Providers',
        icon: 'provider',
        under: 'llm-models',
        load: () => import('./views/llm-providers.ts'),
      },
    ],
  },
  {
    title: 'Run',
    places: [
      { path: 'sessions', title: 'Sessions', icon: 'session', load: () => import('./views/sessions/sessions.ts') },
      { path: 'runs', title: 'Runs', icon: 'run', load: () => import('./views/runs/runs.ts') },
      {
        path: 'compare',
        title: 'Compare runs',
        icon: 'compare',
        under: 'runs',
        load: () => import('./views/compare/compare.ts'),
      },
      { path: 'inbox', title: 'Inbox', icon: 'inbox', load: () => import('./views/inbox.ts') },
      { path: 'schedules', title: 'Schedules', icon: 'schedule', load: () => import('./views/schedules/schedules.ts') },
    ],
  },
  {
    title: 'Organization',
    places: [
      { path: 'costs', title: 'Costs', icon: 'cost', load: () => import('./views/costs/costs.ts') },
      { path: 'members', title: 'Members', icon: 'people', load: () => import('./views/members.ts') },
      {
        path: 'invitations',
        title: 'Invitations',
        icon: 'mail',
        under: 'members',
        load: () => import('./views/invitations.ts'),
      },
      { path: 'api-keys', title: 'API keys', icon: 'key', load: () => import('./views/api-keys.ts') },
      {
        path: 'organizations',
        title: 'Organizations',
        icon: 'organization',
        load: () => import('./views/organizations.ts'),
      },
      { path: 'health', title: 'Health', icon: 'health', load: () => import('./views/health.ts') },
    ],
  },
]

export const PLACES: Place[] = GROUPS.flatMap(({ places }) => places)
