import { randomBytes } from 'node:crypto'
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../prisma/generated/client.ts'
import type { Config } from './config.ts'

const CONNECT_TIMEOUT_MS = 5000
const STATEMENT_TIMEOUT_MS = 30_000

export function connectPostgres(config: Pick<Config, 'DATABASE_URL' | 'DATABASE_POOL_SIZE'>): PrismaClient {
  return new PrismaClient({
    adapter: new PrismaPg({
      connectionString: config.DATABASE_URL,
      max: config.DATABASE_POOL_SIZE,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    }),
  })
}

/** A key that all processes of a deployment share: the first one makes it, the record keeps it. */
export async function sharedKey(db: PrismaClient, name: string): Promise<Uint8Array> {
  await db.serviceKey.createMany({ data: [{ name, value: randomBytes(32) }], skipDuplicates: true })
  const { value } = await db.serviceKey.findUniqueOrThrow({ where: { name } })
  return value
}
