import { useKeys } from '../keys.ts'
import type { RefObject } from '../ui.ts'
import { chosen } from './session/approval.ts'

/**
 * Gives keys to the inbox: j and k go from card to card, a and d choose an answer of the card with the focus. The same key
 * presses the button that it has chosen, if nothing else was done in between. The button never takes the focus, because
 * Space and Enter would press it.
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
  const choose = (name: 'approve' | 'deny') => (event: KeyboardEvent) => {
    // A key that is held down decides nothing.
    if (event.repeat) return
    const card = cards().find((one) => one.contains(document.activeElement))
    const section = document.activeElement?.closest('section')
    const place = section && card?.contains(section) ? section : card
    const button = place?.querySelector<HTMLButtonElement>(`:not([inert]) > .decide .${name}`) ?? undefined
    if (button !== undefined && button === chosen.value) {
      chosen.value = undefined
      button.click()
      return
    }
    const call = button?.closest<HTMLElement>('[role=group]')
    call?.focus({ preventScroll: true })
    chosen.value = button
    const forget = () => {
      if (chosen.value === button) chosen.value = undefined
    }
    call?.addEventListener('blur', forget, { once: true })
  }
  useKeys({
    j: { about: 'Next card', run: () => move(1) },
    k: { about: 'Card before', run: () => move(-1) },
    a: { about: 'Approve: press twice', run: choose('approve') },
    d: { about: 'Deny: press twice', run: choose('deny') },
  })
}
