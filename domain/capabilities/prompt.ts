import type { ResolvedCapability } from './resolve.ts'

/** Returns the base prompt, preceded by the capabilities' additions. */
export function composePrompt(base: string, capabilities: ResolvedCapability[]): string {
  const additions = capabilities.flatMap(({ capability: { id, systemPrompt } }) =>
    systemPrompt ? [`<capability id="${id}">\n${systemPrompt}\n</capability>`] : [],
  )
  if (additions.length === 0) return base
  if (base !== '') additions.push(`<system-prompt>\n${base}\n</system-prompt>`)
  return additions.join('\n\n')
}
