import { withoutHidden } from '../../../lib/hidden-text.ts'
import type { PromptSession } from './capability.ts'
import type { ResolvedCapability } from './resolve.ts'

/** Returns the base prompt, preceded by the capabilities' fixed additions, without those made for a session. */
export function composePrompt(base: string, capabilities: ResolvedCapability[]): string {
  const additions = capabilities.flatMap(({ capability: { id, systemPrompt } }) =>
    typeof systemPrompt === 'string' && systemPrompt !== ''
      ? [`<capability id="${id}">\n${systemPrompt}\n</capability>`]
      : [],
  )
  if (additions.length === 0) return base
  if (base !== '') additions.push(`<system-prompt>\n${base}\n</system-prompt>`)
  return additions.join('\n\n')
}

/** Like `composePrompt`, with the additions that depend on the session. Rejects if one of them fails. */
export async function composeSessionPrompt(
  base: string,
  capabilities: ResolvedCapability[],
  session: PromptSession,
): Promise<string> {
  const spoken = capabilities.map(async ({ capability, config }) => {
    const { systemPrompt } = capability
    if (typeof systemPrompt !== 'function') return { capability, config }
    return { capability: { ...capability, systemPrompt: escapeTags(await systemPrompt(session)) }, config }
  })
  return composePrompt(base, await Promise.all(spoken))
}

/** Names of the prompt's own tags. Between their letters may stand what no font shows and no tag has, such as joiners. */
const NAMES = ['capability', 'system-prompt'].map((name) => [...name].join('\\p{Default_Ignorable_Code_Point}*'))
const OWN_TAG = new RegExp(`<(?=[\\s/\\p{Default_Ignorable_Code_Point}]*(?:${NAMES.join('|')})\\b)`, 'giu')

/**
 * Escapes the prompt's own tags, so that text of a session or a skill cannot end its part of the prompt or begin
 * another one. Characters that only hide such a tag are removed.
 */
export const escapeTags = (text: string): string => withoutHidden(text).replace(OWN_TAG, '&lt;')
