import { newUuid } from '../../domain/ids.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'

/** Another organization, of which no caller of the test is a member; returns its uuid. */
export async function addOrganization(db: PrismaClient): Promise<string> {
  const { id } = await db.organization.create({ data: { id: newUuid(), name: 'Another' } })
  return id
}
