/** Place in a trace. Ids are lower-case hex. */
export type TracePlace = { traceId: string; spanId: string; isSampled: boolean }

/** Version 00 of W3C Trace Context, the only one there is. Ids of zeros are invalid. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/

/** Parses a `traceparent` header. Undefined if it is malformed, as if there were none. */
export function parseTraceparent(header: string): TracePlace | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export const formatTraceparent = ({ traceId, spanId, isSampled }: TracePlace): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
