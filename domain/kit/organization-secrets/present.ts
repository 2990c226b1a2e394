import type { OrganizationSecret } from '../../../contract/secrets.ts'
import type { OrganizationSecret as SecretRow } from '../../../prisma/generated/client.ts'

/** Shown columns, without the value. */
export const SHOWN = { name: true, hosts: true, createdAt: true, updatedAt: true } as const

export const presentSecret = ({
  name,
  hosts,
  createdAt,
  updatedAt,
}: Pick<SecretRow, keyof typeof SHOWN>): OrganizationSecret => ({
  name,
  hosts,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})
