/**
 * node scripts/compile.ts FOLDER UID [FILE…]: keeps the compiled code of modules, which saves a third of a start.
 *
 * Imports the files, or all packages of package.json if there are none. Node keeps compiled code apart for each user, and
 * lets nobody else read it, so the folder is handed to the user who will run the service.
 */
import { chmodSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import module from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

async function importPackages(): Promise<void> {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  // Some packages are imported by other names, or run in browsers only.
  for (const name of Object.keys(dependencies)) await import(name).catch(() => {})
}

async function compile(folder: string, uid: string, files: string[]): Promise<void> {
  module.enableCompileCache(folder)
  for (const file of files) await import(pathToFileURL(path.resolve(file)).href)
  if (files.length === 0) await importPackages()
  module.flushCompileCache()
  const made = module.getCompileCacheDir()
  if (made === undefined) throw new Error(`Node keeps no compiled code in ${folder}`)
  for (const name of readdirSync(made)) chmodSync(path.join(made, name), 0o644)
  renameSync(made, made.replace(/-\d+$/, `-${uid}`))
}

const [folder = '', uid = '', ...files] = process.argv.slice(2)
await compile(folder, uid, files)
// Some packages keep a process alive.
process.exit()
