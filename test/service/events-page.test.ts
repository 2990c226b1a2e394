import { readFileSync } from 'node:fs'
import { Event, eventData, eventTypes } from '../../contract/events.ts'
import {
  fieldsOfObject,
  fieldsOfType,
  listObjects,
  pathsOf,
  readSections,
  type Section,
} from '../support/event-page.ts'
import { playEveryEvent } from '../support/every-event.ts'
import { createSession, type Json } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'

const page = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8')
const sections = readSections(page)
const sectionOf = (name: string): Section => sections.get(name) ?? { text: '', fields: [], example: undefined }

let api: Organization
let events: Json[]
beforeAll(async () => {
  api = await newOrganization()
  events = await playEveryEvent(api, 'lab')
})

describe('docs/events.md', () => {
  it('has a section for each type of events and each object in them, and no other with fields', () => {
    const documented = [...sections].filter(([, { fields }]) => fields.length > 0).map(([name]) => name)
    expect(documented.sort()).toEqual([...eventTypes, ...listObjects()].sort())
  })

  it.each(eventTypes)('has each field of %s with its type, and no other', (type) => {
    expect(sectionOf(type).fields).toEqual(fieldsOfType(type))
  })

  it.each(listObjects())('has each field of %s with its type, and no other', (name) => {
    expect(sectionOf(name).fields).toEqual(fieldsOfObject(name))
  })

  it.each(eventTypes)('has an example of %s with the fields that a real one has', (type) => {
    const { example } = sectionOf(type)
    const real = events.filter((event) => event.type === type).map(({ data }) => data)
    for (const data of [example, ...real]) expect(eventData[type].strict().parse(data)).toEqual(data)
    expect(real.map((data) => pathsOf(data))).toContainEqual(pathsOf(example))
  })

  it('has an example of a whole event', () => {
    const { example } = sectionOf('Event')
    const schema = Event.options.find(({ shape }) => shape.type.value === example.type)
    expect(schema?.strict().safeParse(example)).toMatchObject({ success: true })
    const real = events.filter((event) => event.type === example.type)
    expect(real.map((event) => pathsOf(event))).toContainEqual(pathsOf(example))
  })

  it('has the frame that begins a stream', async () => {
    const stream = await openStream(api, `/v1/sessions/${await createSession(api)}/sse`)
    const { data } = await stream.until(({ event }) => event === 'connected')
    stream.close()
    expect(page).toContain(`event: connected\ndata: ${JSON.stringify(data)}\n`)
  })
})
