/** Schema of any result. Results are parsed by hand, so that a malformed part does not invalidate the rest. */
export const ANY_RESULT = {
  '~standard': {
    version: 1 as const,
    vendor: 'agent-session-service',
    validate: (value: unknown) => ({ value }),
  },
}
