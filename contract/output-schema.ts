import { z } from 'zod'
import { jsonUpTo } from './kit/common.ts'

const KiB = 1024
export const MAX_OUTPUT_SCHEMA_BYTES = 32 * KiB
export const MAX_OUTPUT_BYTES = 64 * KiB

const object = z.record(z.string(), z.unknown())

/** JSON Schema (2020-12) of an object, limited in size because every model call carries it. */
export const OutputSchema = jsonUpTo(object, MAX_OUTPUT_SCHEMA_BYTES)

export const TurnOutput = object.meta({
  description: "Value that fits the turn's output_schema. Null without one, and until the turn is completed.",
})
