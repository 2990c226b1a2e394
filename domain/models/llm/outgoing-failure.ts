import type { OutgoingError, OutgoingReason } from '../../../lib/outgoing/outgoing-error.ts'
import { ModelError } from './model.ts'

/** Failures of the network, which may be over soon. Any other comes from the settings or from the request itself. */
const RETRYABLE: ReadonlySet<OutgoingReason> = new Set(['unknown_host', 'unreachable', 'unreadable', 'timeout'])

/** Converts a failed request to a provider. Causes are not kept: they contain addresses, and loggers record them. */
export const toModelFailure = ({ reason, message }: OutgoingError): ModelError =>
  new ModelError(message, { retryable: RETRYABLE.has(reason) })
