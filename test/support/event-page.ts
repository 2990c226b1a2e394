import { z } from 'zod'
import { Event, type EventType, eventData } from '../../contract/events.ts'
import type { Json } from './http.ts'

/** Row of a table of fields. A `?` after the field says that it may be null or absent. */
export type Field = { name: string; type: string }

/** Part of docs/events.md under one heading: prose, a table of fields, and an example. */
export type Section = { text: string; fields: Field[]; example: Json | undefined }

const EXAMPLE = /```json\n([\s\S]*?)\n```/
const WIDTH = 120

/** Reads the sections whose headings are a type of events, or an object in them, by that name. */
export function readSections(page: string): Map<string, Section> {
  const parts = page.split(/^#{2,3} `?([\w.]+)`?$/m).slice(1)
  const sections = new Map<string, Section>()
  for (let index = 0; index < parts.length; index += 2) {
    const text = String(parts[index + 1]).split(/^## /m)[0] ?? ''
    const example = text.match(EXAMPLE)?.[1]
    sections.set(String(parts[index]), { text, fields: readTable(text), example: example && JSON.parse(example) })
  }
  return sections
}

const readTable = (text: string): Field[] =>
  [...text.matchAll(/^\| `([^|]*)` +\| ([^|]*?) +\|/gm)].map(([, name, type]) => ({
    name: String(name).replaceAll('`', ''),
    type: String(type).replace(/\[(\w+)\]\(#\w+\)/, '$1'),
  }))

/** Returns the page with an example of each type from these events: the first of its type. */
export function replaceExamples(page: string, events: Json[]): string {
  const delta = events.find(({ type }) => type === 'output.message.delta')
  return page.replace(/^### `?([\w.]+)`?\n[\s\S]*?(?=^##|$(?![\s\S]))/gm, (section, name) => {
    const event = name === 'Event' ? delta : events.find(({ type }) => type === name)?.data
    return event === undefined ? section : section.replace(EXAMPLE, () => `\`\`\`json\n${format(event)}\n\`\`\``)
  })
}

/** Formats JSON with each value on one line where it fits. */
function format(value: Json, indent = ''): string {
  const line = formatLine(value)
  if (typeof value !== 'object' || value === null || line.length + indent.length <= WIDTH) return line
  const inner = `${indent}  `
  if (Array.isArray(value)) return `[\n${value.map((item) => inner + format(item, inner)).join(',\n')}\n${indent}]`
  const fields = Object.entries(value).map(([key, field]) => `${inner}${JSON.stringify(key)}: ${format(field, inner)}`)
  return `{\n${fields.join(',\n')}\n${indent}}`
}

function formatLine(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(formatLine).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}: ${formatLine(field)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

const { $defs: definitions = {} } = z.toJSONSchema(z.array(Event)) as Json

const variantsOf = (name: string): string[] => (definitions[name].oneOf ?? []).map(({ $ref }: Json) => nameOf($ref))

/** Returns the names of the objects that have a table of their own: neither variants nor the data of an event type. */
export function listObjects(): string[] {
  const variants = Object.keys(definitions).flatMap(variantsOf)
  const ofTypes = variantsOf('Event').map((name) => nameOf(definitions[name].properties.data.$ref))
  return Object.keys(definitions).filter((name) => isObject(name) && ![...variants, ...ofTypes].includes(name))
}

/** Returns the fields of an object with a table. Fields of a union are named with the kind of their variant. */
export function fieldsOfObject(name: string): Field[] {
  if (name === 'Event') return fieldsOfEnvelope()
  const variants = variantsOf(name).map((variant) => definitions[variant])
  if (variants.length === 0) return fieldsOf(definitions[name])
  return variants.flatMap((variant) =>
    fieldsOf(variant, `${variant.properties.type.const} `).filter((field) => !field.name.endsWith(' type')),
  )
}

/** Returns the fields that all events have. */
function fieldsOfEnvelope(): Field[] {
  const [first = ''] = variantsOf('Event')
  const { properties, required } = definitions[first]
  return fieldsOf({ properties: { ...properties, data: { type: 'object' } }, required })
}

/** Returns the fields of an event's data. */
export const fieldsOfType = (type: EventType): Field[] => fieldsOf(z.toJSONSchema(eventData[type]) as Json)

function fieldsOf({ properties, required = [] }: Json, prefix = ''): Field[] {
  return Object.entries(properties).flatMap(([key, schema]) => {
    const isOptional = !required.includes(key) || isNullable(schema)
    const field = { name: `${prefix}${key}${isOptional ? '?' : ''}`, type: typeOf(schema) }
    const inner = elementOf(schema)
    const path = `${prefix}${key}${field.type.endsWith('[]') ? '[]' : ''}.`
    return [field, ...(inner.properties ? fieldsOf(inner, path) : [])]
  })
}

function typeOf(schema: Json): string {
  const { $ref, type, items } = withoutNull(schema)
  if ($ref !== undefined) return isObject(nameOf($ref)) ? nameOf($ref) : typeOf(definitions[nameOf($ref)])
  if (items !== undefined) return `${typeOf(items)}[]`
  return withoutNull(schema).anyOf ? 'object' : (type ?? 'any')
}

const nameOf = ($ref: string): string => $ref.replace('#/$defs/', '')
const isObject = (name: string): boolean => Boolean(definitions[name].properties ?? definitions[name].oneOf)
const isNullable = (schema: Json): boolean => withoutNull(schema) !== schema
const elementOf = (schema: Json): Json => withoutNull(withoutNull(schema).items ?? schema)

function withoutNull(schema: Json): Json {
  if (Array.isArray(schema.type)) return { ...schema, type: schema.type.find((type: string) => type !== 'null') }
  const isOrNull = schema.anyOf?.length === 2 && schema.anyOf[1].type === 'null'
  return isOrNull ? schema.anyOf[0] : schema
}

/** Returns the paths of all fields in a value, sorted. */
export function pathsOf(value: Json, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [path]
  if (Array.isArray(value)) return [...new Set(value.flatMap((item) => pathsOf(item, `${path}[]`)))].sort()
  return Object.entries(value)
    .flatMap(([key, field]) => [`${path}.${key}`, ...pathsOf(field, `${path}.${key}`)])
    .sort()
}
