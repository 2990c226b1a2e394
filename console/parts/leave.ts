import { hasUnsaved } from '../unsaved.ts'
import { confirmed } from './dialog.ts'

/** Asks before an action leaves unsaved input, which stays guarded in case that the action fails. */
export const wantsToLeave = async (): Promise<boolean> =>
  !hasUnsaved() || confirmed({ title: 'Leave without saving what you have entered?', action: 'Leave' })
