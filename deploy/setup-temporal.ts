/**
 * npm run setup:temporal: makes the search attributes that the service needs in TEMPORAL_NAMESPACE, and ends. May be
 * repeated. The service itself then needs no right to make them. Exit code 1 when they are not there afterwards.
 */
import { Connection } from '@temporalio/client'
import { ConfigError, readConfig } from '../platform/config.ts'
import { findFailure } from '../platform/temporal/check.ts'
import { temporalOptions } from '../platform/temporal/connection.ts'
import { addAttributes } from '../platform/temporal/search-attributes.ts'

const TIMEOUT_MS = 10_000

async function main(): Promise<void> {
  const config = readConfig({ ...process.env, AUTH_MODE: 'none' })
  const options = temporalOptions(config)
  const connection = Connection.lazy({ ...options, connectTimeout: TIMEOUT_MS })
  try {
    const namespace = config.TEMPORAL_NAMESPACE
    const failure = await findFailure({ options, connection, namespace })
    if (failure !== undefined) throw new ConfigError(failure)
    const { added, usable, taken } = await addAttributes(connection, namespace)
    process.stdout.write(
      `Namespace ${namespace}: added ${added.join(', ') || 'nothing'}; there: ${usable.join(', ')}.\n`,
    )
    if (taken.length > 0) throw new Error(`Search attributes of another type have the names ${taken.join(', ')}.`)
  } finally {
    await connection.close()
  }
}

await main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
