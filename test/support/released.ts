import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The latest release, and the commit of its code. A release replaces both, and then tests the next one against itself. */
export const RELEASED = { version: '1.0.0', commit: '973cab761f08a15cd61bd338c2c9043bf6b09cfe' }

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
const shell = (script: string, cwd = ROOT) => run('bash', ['-ec', script], { cwd })

/** Whether this clone has the release's commit: one without history has not. */
export const hasReleased = (): Promise<boolean> =>
  shell(`git cat-file -e ${RELEASED.commit}`).then(
    () => true,
    () => false,
  )

/** Returns a folder with the released code, made when it is first needed. It uses the packages of this checkout. */
export async function releasedFolder(): Promise<string> {
  const folder = path.join(ROOT, '.data', `release-${RELEASED.commit}`)
  if (existsSync(folder)) return folder
  const draft = `${folder}.${process.pid}`
  await mkdir(draft, { recursive: true })
  await shell(`git archive ${RELEASED.commit} | tar -x -C '${draft}'`)
  await symlink(path.join(ROOT, 'node_modules'), path.join(draft, 'node_modules'))
  // Prisma would download its native engine, which generating does not use: any file that exists satisfies it.
  const generate = `PRISMA_SCHEMA_ENGINE_BINARY='${process.execPath}' '${process.execPath}'`
  await shell(`${generate} node_modules/prisma/build/index.js generate --no-hints`, draft)
  await rename(draft, folder).catch(() => rm(draft, { recursive: true }))
  return folder
}
