/**
 * npm run reencrypt: encrypts all stored secrets under the current key, with the environment of the service. May run
 * beside the service, be stopped at any time, and be repeated. Exit code 1 when there is a secret that it cannot read.
 */
import { ConfigError, readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { settleTls } from '../platform/postgres/connection.ts'
import { connectPostgres } from '../platform/postgres/postgres.ts'
import { findKeys } from '../platform/secrets/key-ring.ts'
import { type Reencrypted, reencrypt } from '../platform/secrets/reencrypt.ts'

async function main(): Promise<number> {
  const config = readConfig()
  const { db, close } = connectPostgres(await settleTls(config), createLog(config.LOG_LEVEL, 'reencrypt'))
  try {
    const { current, previous } = await findKeys(config, db)
    // A key that is made here would be unknown to the processes that run.
    if (current === undefined)
      throw new ConfigError('SECRETS_ENCRYPTION_KEY: is needed, as this installation has no key of its own')
    process.stdout.write(`Encrypting all stored secrets under the key ${current.id}.\n`)
    return report(await reencrypt(db, { current, previous }))
  } finally {
    await close()
  }
}

function report({ reencrypted, current, changed, unreadable }: Reencrypted): number {
  process.stdout.write(`Re-encrypted: ${reencrypted}. Already under that key: ${current}.\n`)
  if (changed > 0) process.stdout.write(`Changed meanwhile, and left as they are: ${changed}. Run this once more.\n`)
  for (const [sentence, count] of unreadable) process.stderr.write(`Not readable: ${count} of ${sentence}\n`)
  return unreadable.size === 0 ? 0 : 1
}

process.exitCode = await main().catch((error: unknown) => {
  if (error instanceof ConfigError) process.stderr.write(`The command cannot run with this environment:\n`)
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  return 1
})
