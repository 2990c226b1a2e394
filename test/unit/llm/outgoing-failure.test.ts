import { ModelError } from '../../../domain/models/llm/model.ts'
import { toModelFailure } from '../../../domain/models/llm/outgoing-failure.ts'
import { OutgoingError, type OutgoingReason } from '../../../lib/outgoing/outgoing-error.ts'

const RETRYABLE: Record<OutgoingReason, boolean> = {
  invalid_url: false,
  private_address: false,
  redirect: false,
  too_many_redirects: false,
  too_large: false,
  invalid_request: false,
  unknown_host: true,
  unreachable: true,
  unreadable: true,
  timeout: true,
}

it.each(Object.entries(RETRYABLE))('a request that failed as %s is retryable: %s', (reason, retryable) => {
  const cause = new Error('connect ECONNREFUSED 10.0.0.1:443')
  // The keys of the table are the reasons.
  const failure = toModelFailure(new OutgoingError(reason as OutgoingReason, 'It did not work.', { cause }))
  expect(failure).toBeInstanceOf(ModelError)
  expect(failure).toMatchObject({ message: 'It did not work.', retryable, status: undefined, cause: undefined })
})
