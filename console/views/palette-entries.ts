import { notifyProblem } from '../parts/notice.ts'
import { PLACES } from '../places.ts'
import { link, route } from '../router.ts'
import { api, auth, chooseOrganization, isAdministrator, organization, signOut, user } from '../service.ts'
import { chooseTheme } from '../theme.ts'
import type { ComponentChildren } from '../ui.ts'
import { mayLeave } from '../unsaved.ts'

/** Something that the palette offers: a place to go to, or an action. */
export type Entry = { id: string; label: string; icon: string; note?: ComponentChildren; run(): unknown }

/** Goes to a place as a link does, which asks about unsaved input. */
export const goTo = (href: string) => (): void => {
  location.hash = href
}

const placeEntries = (): Entry[] =>
  PLACES.map(({ path, title, icon }) => ({ id: `place-${path}`, label: title, icon, run: goTo(link(path)) }))

/** Things that can be made, by the paths of their lists. */
const NEW: Record<string, string> = {
  agents: 'New agent',
  sessions: 'New session',
  schedules: 'New schedule',
  skills: 'New skill',
  'mcp-servers': 'New MCP server',
  'llm-providers': 'New provider',
  'api-keys': 'New API key',
  invitations: 'New invitation',
  organizations: 'New organization',
}
const FOR_ALL = ['agents', 'sessions', 'api-keys', 'organizations']

function actionEntries(openKeys: () => unknown): Entry[] {
  const created = Object.entries(NEW)
    .filter(([path]) => FOR_ALL.includes(path) || isAdministrator())
    .map(([path, label]) => ({ id: `new-${path}`, label, icon: 'plus', run: goTo(link(path, 'new')) }))
  const others = (user.value?.organizations ?? []).filter(({ public_id }) => public_id !== organization.value)
  return [
    ...created,
    { id: 'light', label: 'Switch theme: light', icon: 'sun', run: () => chooseTheme('light') },
    { id: 'dark', label: 'Switch theme: dark', icon: 'moon', run: () => chooseTheme('dark') },
    { id: 'system', label: 'Switch theme: like the system', icon: 'system', run: () => chooseTheme('') },
    { id: 'keys', label: 'Keyboard shortcuts', icon: 'info', run: openKeys },
    ...others.map(({ public_id, name }) => ({
      id: public_id,
      label: `Switch to ${name}`,
      icon: 'organization',
      run: () => switchTo(public_id),
    })),
    ...(auth.value?.mode === 'none'
      ? []
      : [{ id: 'sign-out', label: 'Sign out', icon: 'link', run: () => mayLeave() && signOut() }]),
  ]
}

function switchTo(id: string): void {
  if (!mayLeave()) return
  chooseOrganization(id)
  // The current view belongs to the previous organization.
  const [place = ''] = route.value.path
  location.hash = link(place)
}

/** Largest number of entries of a group. */
const MAX_ENTRIES = 8

/** Returns the entries that have all words of a text. Entries that begin with it come first. */
function matching(entries: Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/)
  const isFirst = ({ label }: Entry) => (label.toLowerCase().startsWith(text.toLowerCase()) ? 0 : 1)
  return entries
    .filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)))
    .sort((a, b) => isFirst(a) - isFirst(b))
    .slice(0, MAX_ENTRIES)
}

/** Returns the pages and actions that match a text. All of them match none. */
export function fixedEntries(text: string, openKeys: () => unknown): { title: string; entries: Entry[] }[] {
  const groups = [
    { title: 'Pages', entries: placeEntries() },
    { title: 'Actions', entries: actionEntries(openKeys) },
  ]
  return text === '' ? groups : groups.map(({ title, entries }) => ({ title, entries: matching(entries, text) }))
}

/** Paths of the places of things, by the beginnings of their ids. */
const PLACES_OF_IDS: Record<string, string> = {
  agent: 'agents',
  session: 'sessions',
  skill: 'skills',
  mcp: 'mcp-servers',
  provider: 'llm-providers',
  model: 'llm-models',
}
const ID = /\b(agent|session|turn|skill|mcp|provider|model)_[0-9a-f]{32}\b/g

/** Returns an entry for a text that contains the id of a thing, such as a line of a log. */
export function entriesOfIds(text: string): Entry[] {
  const ids = new Map([...text.matchAll(ID)].map(([id, kind = '']) => [kind, id]))
  const [turn, session] = [ids.get('turn'), ids.get('session')]
  if (turn !== undefined) {
    const run = session ? goTo(link('sessions', session, 'turns', turn)) : () => openTurn(turn)
    return [{ id: turn, label: `Open ${turn}`, icon: 'run', run }]
  }
  return [...ids].map(([kind, id]) => {
    const path = PLACES_OF_IDS[kind] ?? ''
    const icon = PLACES.find((place) => place.path === path)?.icon ?? 'right'
    return { id, label: `Open ${id}`, icon, run: goTo(link(path, id)) }
  })
}

const MAX_TURNS = 100

/** Opens a turn by its id alone. Its address needs the session, which is looked for among the newest turns. */
async function openTurn(id: string): Promise<void> {
  try {
    const { data } = await api.turns.listWaitingTurns({ limit: MAX_TURNS })
    const turn = data.find((candidate) => candidate.id === id)
    if (turn === undefined)
      throw new Error(`It is not among the newest ${MAX_TURNS} turns. Paste its session’s id, too.`)
    location.hash = link('sessions', turn.session_id, 'turns', id)
  } catch (error) {
    notifyProblem(error)
  }
}
