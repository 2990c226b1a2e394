import type { OutgoingError, OutgoingReason } from '../../../lib/outgoing/outgoing-error.ts'
import { ModelError } from './model.ts'

/** Failures of the network, which may be temporary. Others come from the settings or the request. */
const RETRYABLE: ReadonlySet<OutgoingReason> = new Set(['unknown_host', 'unreachable', 'unreadable', 'timeout'])

/** Converts a failed request to a provider. Causes are not kept: they contain addresses, and loggers record them. */
export const toModelFailure = ({ reason, message }: OutgoingError): ModelError =>
  new ModelError(message, { retryable: RETRYABLE.has(reason) })
