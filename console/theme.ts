import { signal } from './ui.ts'

export type Theme = '' | 'light' | 'dark'
const THEME = 'console.theme'

const isTheme = (text: string | undefined): text is Theme => text === '' || text === 'light' || text === 'dark'
const kept = document.documentElement.dataset.theme

/** Chosen colours; '' follows the system. The page has applied the kept choice before it was drawn. */
export const theme = signal<Theme>(isTheme(kept) ? kept : '')

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen
  document.documentElement.dataset.theme = chosen
  try {
    localStorage.setItem(THEME, chosen)
  } catch {
    // The choice lasts as long as the page.
  }
}
