import { readFileSync } from 'node:fs'
import { checkScript, parseScript, ScriptStep } from '../../../domain/models/llm/simulator/llmsim-script.ts'

const document = readFileSync(new URL('../../../docs/simulator.md', import.meta.url), 'utf8')
const prompts = document.match(/^```llmsim\n[^`]*^```$/gm) ?? []

describe('docs/simulator.md', () => {
  it.each(prompts)('has scripts that an agent may have: %s', (prompt) => {
    expect(checkScript(prompt)).toBeUndefined()
  })

  it('shows and describes every field of a step and of its failure', () => {
    const steps = prompts.flatMap((prompt) => parseScript(prompt) ?? [])
    const fields = [...Object.keys(ScriptStep.shape), ...Object.keys(ScriptStep.shape.error.unwrap().shape)]
    const shown = new Set(steps.flatMap((step) => [...Object.keys(step), ...Object.keys(step.error ?? {})]))
    expect([...shown].sort()).toEqual([...new Set(fields)].sort())
    for (const field of fields) expect(document).toContain(`\`${field}\``)
  })
})
