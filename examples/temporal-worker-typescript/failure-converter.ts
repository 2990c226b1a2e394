/** Puts messages and stacks of errors into payloads, which the codec encrypts. */
import { DefaultFailureConverter } from '@temporalio/common'

export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
