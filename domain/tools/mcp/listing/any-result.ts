/** Schema of a result that is read by hand, so that a part of it that is malformed does not cost the rest. */
export const ANY_RESULT = {
  '~standard': {
    version: 1 as const,
    vendor: 'agent-session-service',
    validate: (value: unknown) => ({ value }),
  },
}
