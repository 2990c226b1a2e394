import { type Keys, useKeys } from '../keys.ts'
import type { RefObject } from '../ui.ts'
import { chosen } from './session/approval.ts'
import { type ShownTurn, waitingCalls } from './session/conversation.ts'

/**
 * Gives keys to the inbox: j and k go from card to card, a and d choose an answer of the card with the focus.
 */
export function useInboxKeys(list: RefObject<HTMLElement | null>): void {
  const cards = () => [...(list.current?.children ?? [])] as HTMLElement[]
  const move = (by: number) => {
    const all = cards()
    const at = all.findIndex((card) => card.contains(document.activeElement))
    const next = all[at < 0 ? 0 : at + by]
    next?.focus()
    next?.scrollIntoView({ block: 'nearest' })
  }
  const place = () => {
    const card = cards().find((one) => one.contains(document.activeElement))
    const section = document.activeElement?.closest('section')
    return section && card?.contains(section) ? section : card
  }
  useKeys({
    j: { about: 'Next card', run: () => move(1) },
    k: { about: 'Card before', run: () => move(-1) },
    ...deciding(place),
  })
}

/** Gives a and d to a conversation while exactly one call waits in it, and for approval. */
export function useDecidingKeys(chat: RefObject<HTMLElement | null>, turns: ShownTurn[]): void {
  const [call, ...others] = turns.flatMap(waitingCalls)
  useKeys(call?.kind === 'approval' && others.length === 0 ? deciding(() => chat.current) : {})
}

/** Time in which a key must be pressed again. */
const AGAIN_MS = 2000
let expiry: ReturnType<typeof setTimeout> | undefined

const keyOf = (button?: Element) => (button?.matches('.approve') ? 'a' : 'd')
const forget = () => {
  chosen.value = undefined
}
// Before other listeners, which may keep the event for themselves.
addEventListener('keydown', ({ key }) => key === keyOf(chosen.value) || forget(), true)
addEventListener('pointerdown', forget, true)

/**
 * Returns the keys that choose an answer of the first call in a place. The same key presses the button that it has chosen,
 * soon and if nothing else was done in between. The button never takes the focus, because Space and Enter would press it.
 */
function deciding(place: () => Element | null | undefined): Keys {
  const choose = (name: 'approve' | 'deny') => (event: KeyboardEvent) => {
    // A key that is held down decides nothing.
    if (event.repeat) return
    const button = place()?.querySelector<HTMLButtonElement>(`:not([inert]) > .decide .${name}`) ?? undefined
    clearTimeout(expiry)
    if (button !== undefined && button === chosen.value) {
      forget()
      button.click()
      return
    }
    const call = button?.closest<HTMLElement>('[role=group]')
    call?.focus({ preventScroll: true })
    call?.scrollIntoView({ block: 'nearest' })
    chosen.value = button
    expiry = setTimeout(forget, AGAIN_MS)
  }
  return {
    a: { about: 'Approve: press twice', run: choose('approve') },
    d: { about: 'Deny: press twice', run: choose('deny') },
  }
}
