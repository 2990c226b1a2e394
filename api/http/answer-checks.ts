import type { Context } from 'koa'
import { z } from 'zod'
import { Event } from '../../contract/events.ts'
import { declaredErrors, type Endpoint, isFile, isSchema } from '../../contract/kit/endpoint.ts'
import { ContractViolation, statusOf } from './errors.ts'

export type AnyAnswer = { status: number; body: unknown; headers?: Record<string, string> }

/** Checks of one request's answer, whole or piece by piece. Each throws ContractViolation. Enabled in tests only. */
export type AnswerChecks = {
  answer(answer: AnyAnswer): void
  /** Checks an answer that the handler wrote to ctx itself. */
  ownAnswer(ctx: Context): void
  /** Fails for an endpoint that creates something, because its handler has not used `once`. */
  unguarded(): void
  /** Checks the fields of a list beside `key`, which has its items. */
  listFields(fields: object, key: string): void
  listItem(line: string, key: string): void
  streamedItem(line: string): void
  /** Returns the error to answer with: this one, or a violation when its status is not declared. */
  thrown(error: unknown): unknown
}

/** Returns the checks of a request; undefined outside tests. */
export const checksOf = (ctx: Context): AnswerChecks | undefined => ctx.state.answerChecks

/** Returns the stream's events; in tests each is checked before it is sent. */
export function checkedEvents<E extends { line: string }>(ctx: Context, events: AsyncGenerator<E[], string>) {
  const checks = checksOf(ctx)
  return checks === undefined ? events : checkEach(events, checks)
}

async function* checkEach<E extends { line: string }>(
  events: AsyncGenerator<E[], string>,
  checks: AnswerChecks,
): AsyncGenerator<E[], string> {
  try {
    for (let next = await events.next(); ; next = await events.next()) {
      if (next.done) return next.value
      for (const { line } of next.value) checks.streamedItem(line)
      yield next.value
    }
  } finally {
    await events.return('end')
  }
}

/** Items of one answer that are all checked; of those behind them, one in `SAMPLED`. */
const ALL_CHECKED = 1000
const SAMPLED = 50

export function createAnswerChecks(endpoint: Endpoint): AnswerChecks {
  let items = 0
  // A test with 100,000 events would otherwise spend its time here.
  const isChecked = () => ++items <= ALL_CHECKED || items % SAMPLED === 0
  const operation = `${endpoint.method} ${endpoint.path}`
  const fail = (status: number, problem: string) => new ContractViolation(`${operation} answered ${status}: ${problem}`)
  const hold = (status: number, schema: z.ZodType | undefined, value: unknown, what: string) => {
    if (schema === undefined) throw fail(status, `${what} is declared nowhere`)
    const parsed = schema.safeParse(value)
    if (!parsed.success) throw fail(status, `${what} is not what the contract says: ${summaryOf(parsed.error)}`)
  }
  const checkError = (status: number, sentence: unknown) => {
    if (status === 500 || declaredErrors(endpoint).includes(status)) return
    throw fail(status, `its endpoint does not declare this error, add it to its errors; it said "${sentence}"`)
  }
  const checkAnswer = ({ status, body, headers = {} }: AnyAnswer) => {
    if (!(status in endpoint.responses)) throw fail(status, 'its endpoint does not declare this status')
    const declared = endpoint.responses[status as keyof Endpoint['responses']]
    if (isSchema(declared)) return hold(status, declared, asJson(body), 'the body')
    if (declared == null) {
      if (body != null) throw fail(status, 'its endpoint declares no body')
      return
    }
    if (isFile(declared)) {
      const { contentType } = body as { contentType: string }
      if (!isOfType(contentType, declared.contentType)) throw fail(status, `the file is of type ${contentType}`)
      return
    }
    const type = headers['Content-Type'] ?? ''
    if (typeof body !== 'string' || !type.startsWith(declared.contentType)) {
      throw fail(status, `the body is not a text of type ${declared.contentType}`)
    }
  }
  return {
    answer: checkAnswer,
    ownAnswer(ctx) {
      const { statusCode: status } = ctx.res
      if (status >= 400) return checkError(status, JSON.stringify(ctx.body))
      if (status === 200 && endpoint.streams !== undefined) return
      if (!(status in endpoint.responses)) throw fail(status, 'its endpoint does not declare this status')
      if (ctx.body !== undefined && ctx.respond !== false) checkAnswer({ status, body: ctx.body })
    },
    unguarded() {
      if (endpoint.creates)
        throw new ContractViolation(`${operation} created something without regard to Idempotency-Key`)
    },
    listFields: (fields, key) => hold(200, listOf(endpoint), { ...fields, [key]: [] }, 'the list without its items'),
    listItem: (line, key) => isChecked() && hold(200, itemOf(endpoint, key), JSON.parse(line), 'an item of the list'),
    streamedItem: (line) => isChecked() && hold(200, streamedBy(endpoint), JSON.parse(line), 'an event of the stream'),
    thrown(error) {
      try {
        const status = statusOf(error)
        if (status !== undefined) checkError(status, (error as Error).message)
        return error
      } catch (violation) {
        return violation
      }
    },
  }
}

const MAX_SUMMARY_CHARACTERS = 600

const summaryOf = (error: z.ZodError): string => z.prettifyError(error).slice(0, MAX_SUMMARY_CHARACTERS)

/** Reports whether a content type is covered by the declared one; `image/*` covers every type of image. */
const isOfType = (type: string, declared: string): boolean => type.startsWith(declared.replace(/\*.*$/, ''))

const asJson = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)))

const listOf = (endpoint: Endpoint): z.ZodType | undefined => {
  const declared = endpoint.responses[200]
  return isSchema(declared) ? declared : undefined
}

/** Returns the schema of an element of the list that the field `key` is. */
function itemOf(endpoint: Endpoint, key: string): z.ZodType | undefined {
  const declared = listOf(endpoint)
  // An answer that may be a list is one of several.
  const options = declared instanceof z.ZodUnion ? declared.options : [declared]
  const list = options.find((option) => option instanceof z.ZodObject && key in option.shape)
  const data = list instanceof z.ZodObject ? list.shape[key] : undefined
  return data instanceof z.ZodArray ? (data.element as z.ZodType) : undefined
}

const streamedBy = ({ streams, streamed }: Endpoint): z.ZodType | undefined =>
  streams === undefined ? undefined : (streamed ?? Event)
