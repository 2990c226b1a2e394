import { signal } from './ui.ts'

/** Grows whenever this page changes the calls that wait for a person. */
export const changes = signal(0)

export const lookAgain = (): void => {
  changes.value++
}

/** Number of turns that wait for a person. */
export const waitingCount = signal(0)

/** Grows whenever this page approves a tool for a whole session. */
export const approvals = signal(0)
