import { type InputRequests, inputRequired } from '@modelcontextprotocol/server'
import { NOT_APPROVED, type SubmitToolResultsRequest } from '../../../contract/turns.ts'
import { toId } from '../../../domain/kit/ids.ts'
import { type AgentAnswer, type Approval, AskedTurn, CONSENT_FORM, Consent } from './contract.ts'

type ToolResult = SubmitToolResultsRequest['tool_results'][number]
type Pending = AgentAnswer['pending']

/** A user is shown all arguments of a call, or is not asked here. */
const MAX_SHOWN_CHARACTERS = 4000
const MAX_QUESTIONS = 20
const MAX_REASON_CHARACTERS = 2000

/** Returns a form for each call that waits for approval, by the call's id, except for calls already asked about. */
export function askForConsent(pending: Pending, asked: string[]): InputRequests | undefined {
  const forms = pending
    .filter(({ id, kind }) => kind === 'approval' && !asked.includes(id))
    .map(({ id, name, arguments: args }) => ({
      id,
      message: `May the agent call ${name}?\n\n${JSON.stringify(args, null, 2)}`,
    }))
    .filter(({ message }) => message.length <= MAX_SHOWN_CHARACTERS)
    .slice(0, MAX_QUESTIONS)
    .map(({ id, message }) => [id, inputRequired.elicit({ message, requestedSchema: CONSENT_FORM })] as const)
  return forms.length === 0 ? undefined : Object.fromEntries(forms)
}

/**
 * Returns the decisions for calls that wait for approval. A form that was dismissed, or filled in wrongly, decides
 * nothing.
 */
export function readConsents(pending: Pending, responses: Record<string, unknown>): ToolResult[] {
  return pending.flatMap(({ id, kind }) => {
    if (kind !== 'approval' || !Object.hasOwn(responses, id)) return []
    const { data: consent } = Consent.safeParse(responses[id])
    if (consent === undefined || consent.action === 'cancel') return []
    const approved = consent.action === 'accept' ? consent.content?.approved : false
    return approved == null ? [] : [decide({ call_id: id, approved, reason: consent.content?.reason ?? '' })]
  })
}

/** Returns the result that approves or refuses a call. */
export function decide({ call_id, approved, reason = '' }: Approval): ToolResult {
  if (approved || reason.trim() === '') return { tool_call_id: call_id, result: { approved } }
  const error = `${NOT_APPROVED}: ${reason.trim().slice(0, MAX_REASON_CHARACTERS)}`
  return { tool_call_id: call_id, error }
}

/** Names the turn that a request is about, for when it comes again with its user's answers. */
export const writeState = ({ session, turn }: AskedTurn): string =>
  Buffer.from(JSON.stringify({ session: toId('session', session), turn: toId('turn', turn) })).toString('base64url')

/** Reads that state. Throws for any other text. */
export const readState = (state: string): AskedTurn =>
  AskedTurn.parse(JSON.parse(Buffer.from(state, 'base64url').toString()))
