import type { LlmProviderType } from '../../../contract/llm-providers.ts'
import { invalid } from '../../kit/errors.ts'
import { llmsim } from '../llm/simulator/llmsim.ts'

/** Throws `invalid` for an unknown model of the simulator. Only other providers know their own models' names. */
export function checkModelName(type: LlmProviderType, name: string): void {
  if (type !== 'llmsim' || llmsim(name) !== undefined) return
  throw invalid(
    'model_id: must be llmsim-default, llmsim-latency, llmsim-echo, llmsim-script or llmsim-lorem-<number of tokens>',
  )
}
