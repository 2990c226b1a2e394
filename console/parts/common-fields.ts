import { optionsOf } from './choice.ts'
import type { Field, Values } from './form.ts'

export const STATUS: Field = {
  name: 'status',
  label: 'Status',
  kind: 'choice',
  isRequired: true,
  options: optionsOf({ active: 'Active', disabled: 'Disabled' }),
}

/** Entry for removing a stored secret, whose own entry keeps it if empty. */
export const REMOVE_KEY: Field = { name: 'remove_key', label: 'Remove the stored key', kind: 'boolean' }

/** Returns changes as the service expects them: a key of '' removes the stored key. */
export const keyChanges = ({ remove_key, ...changes }: Values): Values =>
  remove_key ? { api_key: '', ...changes } : changes
