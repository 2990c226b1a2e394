import type { Visit } from '../protocol/client.ts'
import { type McpContent, partsOf, toContent } from './contents.ts'
import { descriptionOf, isUnknown, keyOf, type Listed, mimeTypeOf, NONE, nameOf, readPages } from './read-pages.ts'

type Described = {
  name: string
  title: string | undefined
  description: string | undefined
  mime_type: string | undefined
}
export type McpResource = Described & { uri: string }
export type McpResourceTemplate = Described & { uri_template: string }

export type McpResources = { resources: Listed<McpResource>; templates: Listed<McpResourceTemplate> }

const described = (fields: Record<string, unknown>): Described => ({
  name: nameOf(fields),
  ...descriptionOf(fields),
  mime_type: mimeTypeOf(fields),
})

const RESOURCES = {
  method: 'resources/list',
  key: 'resources',
  toItem: (fields: Record<string, unknown>): McpResource | undefined => {
    const uri = keyOf(fields.uri)
    return uri === undefined ? undefined : { uri, ...described(fields) }
  },
}

const TEMPLATES = {
  method: 'resources/templates/list',
  key: 'resourceTemplates',
  toItem: (fields: Record<string, unknown>): McpResourceTemplate | undefined => {
    const template = keyOf(fields.uriTemplate)
    return template === undefined ? undefined : { uri_template: template, ...described(fields) }
  },
}

/** Lists the resources of a server, and its templates of addresses. */
export const LIST_RESOURCES: Visit<McpResources> = {
  late: 'did not list its resources',
  large: 'listed its resources in',
  run: async (server) => {
    if (!server.offers('resources')) return { resources: NONE, templates: NONE }
    return { resources: await readPages(server, RESOURCES), templates: await readPages(server, TEMPLATES) }
  },
}

/** Reads a resource. Undefined if the server does not know it. */
export const readResource = (uri: string): Visit<McpContent[] | undefined> => ({
  late: 'did not send the resource',
  large: 'sent a resource in',
  run: async (server) => {
    if (!server.offers('resources')) return undefined
    try {
      const { contents } = await server.ask('resources/read', { uri })
      return partsOf(contents, toContent)
    } catch (error) {
      if (isUnknown(error)) return undefined
      throw error
    }
  },
})
