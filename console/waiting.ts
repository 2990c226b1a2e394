import { signal } from './ui.ts'

/** Grows whenever this page changes the calls that wait for a person. */
export const changes = signal(0)

export const lookAgain = (): void => {
  changes.value++
}
