import { signal } from './ui.ts'

/** Grows whenever something here has changed what waits for a person. */
export const changes = signal(0)

export const lookAgain = (): void => {
  changes.value++
}
