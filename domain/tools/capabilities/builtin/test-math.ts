import { type Capability, type Tool, ToolError } from '../capability.ts'

const operation = (name: string, description: string, calculate: (a: number, b: number) => number): Tool => ({
  name,
  displayName: name.charAt(0).toUpperCase() + name.slice(1),
  description,
  parameters: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
    additionalProperties: false,
  },
  timeoutMs: 5000,
  mayRunAgain: true,
  async run({ a, b }) {
    const result = calculate(Number(a), Number(b))
    if (!Number.isFinite(result)) throw new ToolError('The result is too large for a number.')
    return { value: { result } }
  },
})

function divide(a: number, b: number): number {
  if (b === 0) throw new ToolError('A number cannot be divided by zero.')
  return a / b
}

export const testMath: Capability = {
  id: 'test_math',
  name: 'Test: math',
  description: 'Four arithmetic tools, for testing agents and clients.',
  status: 'available',
  category: 'testing',
  icon: 'calculator',
  dependencies: [],
  features: [],
  tools: [
    operation('add', 'Adds b to a.', (a, b) => a + b),
    operation('subtract', 'Subtracts b from a.', (a, b) => a - b),
    operation('multiply', 'Multiplies a by b.', (a, b) => a * b),
    operation('divide', 'Divides a by b.', divide),
  ],
}
