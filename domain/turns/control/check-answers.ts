import { QuestionAnswer, type SubmitToolResultsRequest } from '../../../contract/turns.ts'
import { isQuestionId } from '../../events/log/steps.ts'
import { afterField, invalid, tooMany } from '../../kit/errors.ts'
import { BUSY, type CheckedCall, checkArguments } from '../../tools/capabilities/arguments/check.ts'
import { MISFIT } from '../../tools/capabilities/arguments/schema-problems.ts'
import { ASK_USER_TOOL } from '../../tools/capabilities/builtin/ask-user.ts'
import type { Deps } from '../deps.ts'

type Where = { organizationId: string; sessionId: string }
type Results = SubmitToolResultsRequest['tool_results']
type Schema = Record<string, unknown>

/**
 * Compares answers with the schemas that the agent's tool ask_user has asked for. Throws `invalid` for the first that does
 * not fit. Other tools compare their answers themselves. A question never changes, so this needs no lock, which a schema
 * could hold for a second.
 */
export async function checkAnswers(deps: Deps, where: Where, results: Results): Promise<void> {
  const answers = results.flatMap(({ tool_call_id: id, result }, index) => {
    const answer = isQuestionId(id) ? QuestionAnswer.safeParse(result).data : undefined
    return answer?.action === 'accept' ? [{ id, index, args: answer.content ?? {} }] : []
  })
  if (answers.length === 0) return
  const schemas = await readSchemas(
    deps,
    where,
    answers.map(({ id }) => id),
  )
  const asked = answers.flatMap(({ id, ...answer }) => {
    const schema = schemas.get(id)
    return schema === undefined ? [] : [{ ...answer, schema }]
  })
  const calls: CheckedCall[] = asked.map(({ schema, args }) => ({ schema, args, isTrusted: false }))
  const owner = await deps.owners.ownerOf(where.organizationId)
  const problems = await checkArguments(deps.threads.schemas, calls, { owner })
  const wrong = problems.findIndex((problem) => problem !== undefined)
  const problem = problems[wrong]
  if (problem === undefined) return
  if (problem === BUSY) throw tooMany('The answers cannot be checked at the moment', 5)
  const field = `tool_results.${asked[wrong]?.index}.result.content`
  throw invalid(`${field}: must fit the schema of the question: ${afterField(problem.replace(MISFIT, ''))}`)
}

/** Reads the schemas of a session's questions that the tool ask_user has asked, by the questions' ids. */
async function readSchemas({ db }: Deps, { organizationId, sessionId }: Where, ids: string[]) {
  const rows = await db.$queryRaw<{ id: string; schema: Schema }[]>`
    SELECT question ->> 'id' AS id, question #> '{arguments,requested_schema}' AS schema
    FROM sessions s JOIN turns t ON t.session_id = s.id AND t.finished_at IS NULL
    JOIN events e ON e.turn_id = t.id AND e.type = 'tool.call_requested'
    CROSS JOIN jsonb_array_elements(e.data -> 'tool_calls') AS question
    WHERE s.id = ${sessionId}::uuid AND s.organization_id = ${organizationId}::uuid
      AND question ->> 'id' = ANY (${ids}) AND question #>> '{arguments,tool}' = ${ASK_USER_TOOL}`
  return new Map(rows.map(({ id, schema }) => [id, schema]))
}
