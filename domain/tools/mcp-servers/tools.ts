import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import type { McpServer } from '../../../prisma/generated/client.ts'
import type { ListedTool } from '../mcp/protocol/client.ts'

/** Tool in the column `tools`. */
export type StoredTool = ListedTool & { fingerprint: string }
export type LeftOut = { name: string; reason: string }

/** Content of the column `tools`: the result of the last discovery. */
export type StoredTools = { tools: StoredTool[]; leftOut: LeftOut[]; instructions?: string | undefined }

/**
 * Fingerprints of tools by their names. The column `accepted_tools` has pairs, because an object would lose a tool
 * named like a built-in property.
 */
export type Fingerprints = ReadonlyMap<string, string>

/** Returns the tools of a server's row. Undefined before they have been read. */
export const toolsOf = ({ tools }: Pick<McpServer, 'tools'>): StoredTools | undefined =>
  // Only `discover.ts` writes the column.
  tools === null ? undefined : (tools as unknown as StoredTools)

/** Returns the fingerprints that an administrator has accepted. Undefined before the tools have been read. */
export const acceptedOf = ({ acceptedTools }: Pick<McpServer, 'acceptedTools'>): Fingerprints | undefined =>
  acceptedTools === null ? undefined : new Map(acceptedTools as [string, string][])

export const fingerprintsOf = (tools: StoredTool[]): Fingerprints =>
  new Map(tools.map(({ name, fingerprint }) => [name, fingerprint]))

export const areEqual = (some: Fingerprints, others: Fingerprints): boolean =>
  some.size === others.size && [...some].every(([name, fingerprint]) => others.get(name) === fingerprint)

/** Returns a hash of a tool's complete listing. The order of fields does not matter. */
export const fingerprintOf = ({
  name,
  title,
  description,
  inputSchema,
  isReadOnly,
  isIdempotent,
}: ListedTool): string =>
  createHash('sha256')
    .update(canonicalJson({ name, title, description, inputSchema, isReadOnly, isIdempotent }))
    .digest('base64url')

/** Returns the version of a tool for approvals: its server and its fingerprint. */
export const versionOf = (serverId: string, { fingerprint }: StoredTool): string =>
  createHash('sha256').update(`${serverId} ${fingerprint}`).digest('base64url')
