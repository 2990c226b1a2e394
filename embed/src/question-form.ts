import { h } from './dom.ts'
import { plain } from './plain.ts'

type Schema = {
  type?: unknown
  title?: unknown
  description?: unknown
  default?: unknown
  enum?: unknown
  items?: unknown
  required?: unknown
  properties?: Record<string, Schema>
}
type Field = { name: string; element: HTMLElement; read(): unknown }

/** Form for the flat schemas of MCP's questions. */
export type QuestionForm = { elements: HTMLElement[]; read(): Record<string, unknown> }

/** Returns undefined for a schema with a property that is not a text, a number, a choice, choices or a yes or no. */
export function createForm(schema: unknown): QuestionForm | undefined {
  const { properties = {}, required } = (isObject(schema) ? schema : {}) as Schema
  const names = Array.isArray(required) ? required : []
  const fields = Object.entries(properties).map(([name, property]) =>
    fieldOf(name, isObject(property) ? property : {}, names.includes(name)),
  )
  if (fields.some((field) => field === undefined)) return undefined
  const known = fields.filter((field) => field !== undefined)
  return {
    elements: known.map(({ element }) => element),
    read: () =>
      Object.fromEntries(known.map((field) => [field.name, field.read()]).filter(([, value]) => value !== '')),
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? plain(value) : undefined

function fieldOf(name: string, schema: Schema, required: boolean): Field | undefined {
  const { type, title, description } = schema
  const label = (input: HTMLElement) =>
    h('label', {}, h('span', {}, textOf(title) ?? plain(name)), input, textOf(description) ?? '')
  if (Array.isArray(schema.enum)) {
    const options = schema.enum.map(String)
    const input = h('select', { required, part: 'input' }, ...['', ...options].map((option) => h('option', {}, option)))
    if (options.includes(String(schema.default))) input.value = String(schema.default)
    return { name, element: label(input), read: () => input.value }
  }
  if (type === 'array' && isObject(schema.items) && 'enum' in schema.items && Array.isArray(schema.items.enum)) {
    const boxes = schema.items.enum.map((option) => ({ option, input: h('input', { type: 'checkbox' }) }))
    const labels = boxes.map(({ option, input }) => h('label', {}, input, h('span', {}, plain(String(option)))))
    const element = h('fieldset', {}, h('legend', {}, textOf(title) ?? plain(name)), ...labels)
    return { name, element, read: () => boxes.flatMap(({ option, input }) => (input.checked ? [option] : [])) }
  }
  if (type === 'boolean') {
    const input = h('input', { type: 'checkbox', checked: schema.default === true })
    return { name, element: label(input), read: () => input.checked }
  }
  const isNumber = type === 'number' || type === 'integer'
  if (type !== 'string' && !isNumber) return undefined
  const kind = isNumber ? { type: 'number', step: type === 'integer' ? 1 : 'any' } : { type: 'text' }
  const value = ['string', 'number'].includes(typeof schema.default) ? String(schema.default) : undefined
  const input = h('input', { ...kind, value, required, part: 'input' })
  return {
    name,
    element: label(input),
    read: () => (isNumber && input.value !== '' ? input.valueAsNumber : input.value),
  }
}
