import {
  type ConverterHint,
  defaultPayloadConverter,
  type Payload,
  type PayloadConverter,
  RawValue,
  type SerializationContext,
} from '@temporalio/common'

/**
 * The default converter, which leaves a payload as it is if it cannot read it. Workers of organizations encrypt what they
 * return; in a workflow an exception would be repeated for ever.
 */
export const payloadConverter: PayloadConverter = {
  toPayload: (value, context, hint) => defaultPayloadConverter.toPayload(value, context, hint),
  fromPayload: <T>(payload: Payload, context?: SerializationContext, hint?: ConverterHint<T>): T => {
    try {
      return defaultPayloadConverter.fromPayload(payload, context, hint)
    } catch {
      // The caller's type is a promise of the payload's sender anyway.
      return RawValue.fromPayload(payload) as T
    }
  },
}
