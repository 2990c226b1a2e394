import { newUuid } from '../../domain/kit/ids.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'

/** Creates an organization without members. Returns its UUID. */
export async function addOrganization(db: PrismaClient): Promise<string> {
  const { id } = await db.organization.create({ data: { id: newUuid(), name: 'Another' } })
  return id
}

/** Creates a user who is in no organization. Returns the UUID. */
export async function addUser(db: PrismaClient): Promise<string> {
  const id = newUuid()
  await db.user.create({ data: { id, email: `${id}@example.com`, name: 'Another' } })
  return id
}
