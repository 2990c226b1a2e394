import type { Deps } from '../deps.ts'

/** Returns the ids whose images belong to the organization and are completely uploaded. */
export async function existingImages(deps: Deps, organizationId: string, ids: string[]): Promise<Set<string>> {
  const rows = await deps.db.image.findMany({
    where: { id: { in: ids }, organizationId, completedAt: { not: null } },
    select: { id: true },
  })
  return new Set(rows.map(({ id }) => id))
}
