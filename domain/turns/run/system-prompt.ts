import { readBeginning } from '../../session-data/files/read-beginning.ts'
import { composeSessionPrompt } from '../../tools/capabilities/prompt.ts'
import type { Deps } from '../deps.ts'
import type { TurnContext } from './turn-context.ts'

/** Returns the agent's prompt with the additions of the capabilities, as the session's files are now. */
export const readSystemPrompt = (
  deps: Deps,
  { organizationId, sessionId, agentPrompt, capabilities }: TurnContext,
): Promise<string> =>
  composeSessionPrompt(agentPrompt, capabilities, {
    readFile: (path, maxBytes) => readBeginning(deps, { organizationId, sessionId }, path, maxBytes),
  })
