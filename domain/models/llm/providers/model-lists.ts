import { isRecord } from '../../../../lib/is-record.ts'

export type ListedModel = { name: string; displayName: string }

/** Page of a provider's list. `next` is the token of the next page. */
export type ModelPage = { models: ListedModel[]; next?: string | undefined }

/** The form of a provider's list of models. */
export type ModelList = {
  headers: Record<string, string>
  keyHeader: (apiKey: string) => Record<string, string>
  query: Record<string, string>
  /** Query parameter for the token of a page, '' if the list has one page. */
  tokenParameter: string
  /** Reads a page. Returns undefined if the JSON has another form. */
  read: (body: Record<string, unknown>) => ModelPage | undefined
}

const OPENAI: ModelList = {
  headers: {},
  keyHeader: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  query: {},
  tokenParameter: '',
  read: ({ data }) => (Array.isArray(data) ? { models: data.flatMap((entry) => toModel(entry, 'id')) } : undefined),
}

const ANTHROPIC: ModelList = {
  headers: { 'anthropic-version': '2023-06-01' },
  keyHeader: (apiKey) => ({ 'x-api-key': apiKey }),
  query: { limit: '1000' },
  tokenParameter: 'after_id',
  read: ({ data, has_more, last_id }) =>
    Array.isArray(data)
      ? {
          models: data.flatMap((entry) => toModel(entry, 'id', 'display_name')),
          next: has_more ? toToken(last_id) : undefined,
        }
      : undefined,
}

const GEMINI: ModelList = {
  headers: {},
  keyHeader: (apiKey) => ({ 'x-goog-api-key': apiKey }),
  query: { pageSize: '1000' },
  tokenParameter: 'pageToken',
  read: ({ models, nextPageToken }) =>
    Array.isArray(models)
      ? {
          models: models.filter(isGenerating).flatMap((entry) => toModel(entry, 'name', 'displayName')),
          next: toToken(nextPageToken),
        }
      : undefined,
}

export const MODEL_LISTS = { openai: OPENAI, openai_completions: OPENAI, anthropic: ANTHROPIC, gemini: GEMINI }

/** Reads an entry of a list. Returns nothing if its name is unusable. */
function toModel(entry: unknown, nameField: string, displayNameField = nameField): ListedModel[] {
  if (!isRecord(entry)) return []
  const { [nameField]: id, [displayNameField]: displayName } = entry
  // Gemini's names are paths of resources. Its own SDKs omit this part.
  const name = typeof id === 'string' ? id.replace(/^models\//, '') : undefined
  if (!isUsable(name)) return []
  return [{ name, displayName: displayNameField !== nameField && isUsable(displayName) ? displayName : name }]
}

const isGenerating = (entry: unknown): boolean =>
  isRecord(entry) &&
  Array.isArray(entry.supportedGenerationMethods) &&
  entry.supportedGenerationMethods.includes('generateContent')

const MAX_NAME_BYTES = 255

const isUsable = (text: unknown): text is string =>
  typeof text === 'string' &&
  text.trim() !== '' &&
  Buffer.byteLength(text) <= MAX_NAME_BYTES &&
  text.isWellFormed() &&
  !/\p{Cc}/u.test(text)

const MAX_TOKEN_LENGTH = 2000

const toToken = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TOKEN_LENGTH ? value : undefined
