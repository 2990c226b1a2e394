import type { Field, Values } from './form.ts'

export const STATUS: Field = {
  name: 'status',
  label: 'Status',
  kind: 'choice',
  isRequired: true,
  options: ['active', 'disabled'].map((value) => ({ value, label: value })),
}

/** Entry beside one for a secret of which one is stored: an empty one keeps it. */
export const REMOVE_KEY: Field = { name: 'remove_key', label: 'Remove the stored key', kind: 'boolean' }

/** Returns changes in the terms of the service, for which a key of '' removes the one that is stored. */
export const keyChanges = ({ remove_key, ...changes }: Values): Values =>
  remove_key ? { api_key: '', ...changes } : changes
