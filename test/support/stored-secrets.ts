import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { newUuid } from '../../domain/kit/ids.ts'
import { placeOf as placeOfRow } from '../../domain/kit/secrets.ts'
import { SESSION_SECRETS } from '../../domain/session-data/storage/secret-column.ts'
import { createLog } from '../../platform/log.ts'
import { connectPostgres } from '../../platform/postgres/postgres.ts'
import { type EncryptionKey, keyFromText } from '../../platform/secrets/encryption-key.ts'
import { createSecrets } from '../../platform/secrets/secrets.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import { cloneDatabase } from './database.ts'
import { PATIENCE_MS } from './http.ts'

/** Made-up key, as a variable has it. */
export const keyText = (name: string): string => createHash('sha256').update(`secrets key ${name}`).digest('hex')
export const keyNamed = (name: string): EncryptionKey => keyFromText(keyText(name))
const secretsOf = (name: string) => createSecrets({ current: keyNamed(name), previous: [] })

/** Database of one test, in which providers have encrypted keys, and sessions secrets. */
export type SecretsDatabase = {
  url: string
  db: PrismaClient
  /** Stores a provider with this API key under the named key, and returns its id. Ids ascend. */
  store(apiKey: string, keyName: string): Promise<string>
  /** Stores a secret of a session that is not there, which no foreign key prevents. */
  storeInSession(name: string, text: string, keyName: string): Promise<void>
  /** Reads a secret of that session with the named key alone. */
  readInSession(name: string, keyName: string): Promise<string>
  /** Reads all API keys, in the order of their ids, with the named key alone. */
  readAll(keyName: string): Promise<string[]>
  drop(): Promise<void>
}

export async function createSecretsDatabase(): Promise<SecretsDatabase> {
  const { url, drop } = await cloneDatabase()
  const { db, close } = connectPostgres({ DATABASE_URL: url, DATABASE_POOL_SIZE: 4 }, createLog('silent', 'test'))
  const { id: organizationId } = await db.organization.findFirstOrThrow()
  const sessionId = newUuid()
  const placeInSession = (name: string) => placeOfRow(SESSION_SECRETS, [sessionId, name])
  const placeOf = (id: string) => `llm_providers/${organizationId}/${id}/api_key`
  return {
    url,
    db,
    store: async (text, keyName) => {
      const id = newUuid()
      const apiKey = secretsOf(keyName).encrypt(text, placeOf(id))
      await db.llmProvider.create({ data: { id, organizationId, name: id, type: 'openai', apiKey } })
      return id
    },
    storeInSession: async (name, text, keyName) => {
      const value = secretsOf(keyName).encrypt(text, placeInSession(name))
      const now = new Date()
      await db.sessionSecret.create({ data: { sessionId, name, value, createdAt: now, updatedAt: now } })
    },
    readInSession: async (name, keyName) => {
      const { value } = await db.sessionSecret.findUniqueOrThrow({ where: { sessionId_name: { sessionId, name } } })
      return secretsOf(keyName).decrypt(value, placeInSession(name))
    },
    readAll: async (keyName) => {
      const rows = await db.llmProvider.findMany({ where: { apiKey: { not: null } }, orderBy: { id: 'asc' } })
      return rows.map(({ id, apiKey }) => secretsOf(keyName).decrypt(apiKey ?? new Uint8Array(), placeOf(id)))
    },
    drop: async () => {
      await close()
      await drop()
    },
  }
}

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }
export type Program = { kill(): void; ended: Promise<Ended> }

/** Runs a program of the repository, as the image does, until it ends by itself, or is killed because it does not. */
export function runProgram(file: string, environment: Record<string, string>): Program {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
  })
  const texts = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (texts.stdout += chunk))
  child.stderr.on('data', (chunk) => (texts.stderr += chunk))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, ...texts }))
  })
  return { kill: () => void child.kill('SIGKILL'), ended }
}
