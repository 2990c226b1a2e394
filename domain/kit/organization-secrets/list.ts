import type { OrganizationSecret } from '../../../contract/secrets.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import type { All } from '../lists.ts'
import { presentSecret, SHOWN } from './present.ts'

/** Lists the organization's secrets by name, without their values. */
export async function listSecrets({ db }: Deps, { organizationId }: Actor): Promise<All<OrganizationSecret>> {
  const orderBy = { name: 'asc' } as const
  return (await db.organizationSecret.findMany({ where: { organizationId }, select: SHOWN, orderBy })).map(
    presentSecret,
  )
}
