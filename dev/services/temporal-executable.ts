import { readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { findExecutable, findOnPath, isExecutable, type Log, lastLines, runCommand } from './command.ts'

/** Version to install. Later versions have replace directives in their go.mod, which `go install` refuses. */
const GO_PACKAGE = 'github.com/temporalio/cli/cmd/temporal@v1.5.1'
const GO_INSTALL_TIMEOUT_MS = 900_000
const DOWNLOAD_TIMEOUT_MS = 60_000

const DOWNLOAD_FOLDER = fileURLToPath(new URL('../../.data/tools', import.meta.url))
const DOWNLOAD_SCRIPT = fileURLToPath(new URL('./download-temporal.ts', import.meta.url))

function findGo(): Promise<string | undefined> {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), '/usr/local/go/bin', '/opt/homebrew/bin']
  return findExecutable('go', folders)
}

async function listGoBinaryFolders(): Promise<string[]> {
  const folders = [path.join(homedir(), 'go', 'bin')]
  const go = await findGo()
  if (go === undefined) return folders
  const { output } = await runCommand(go, ['env', 'GOBIN', 'GOPATH'], { timeoutMs: 10_000 })
  const [goBin = '', goPath = ''] = output.split('\n').map((line) => line.trim())
  return [goBin, ...goPath.split(path.delimiter).map((folder) => path.join(folder, 'bin')), ...folders]
}

/** Finds the downloaded program by the beginning of its name, which ends with a version. */
async function findDownloaded(): Promise<string | undefined> {
  const names = await readdir(DOWNLOAD_FOLDER).catch(() => [])
  for (const name of names.filter((candidate) => candidate.startsWith('temporal-'))) {
    const file = path.join(DOWNLOAD_FOLDER, name)
    if (!/\.[a-z]+$/.test(name) && (await isExecutable(file))) return file
  }
  return undefined
}

async function download(log: Log, tried: string[]): Promise<string | undefined> {
  log('the Temporal CLI is missing; downloading it (at most 60 s)')
  const args = ['--disable-warning=ExperimentalWarning', DOWNLOAD_SCRIPT, DOWNLOAD_FOLDER]
  const result = await runCommand(process.execPath, args, { timeoutMs: DOWNLOAD_TIMEOUT_MS })
  const found = await findDownloaded()
  if (found === undefined) tried.push(`the download of @temporalio/testing: ${lastLines(result.output, 3)}`)
  return found
}

async function installWithGo(log: Log, tried: string[]): Promise<string | undefined> {
  const go = await findGo()
  if (go === undefined) {
    tried.push('go install: there is no go on the PATH')
    return undefined
  }
  log(`building the Temporal CLI with go install ${GO_PACKAGE}; this takes 2 to 3 minutes, once`)
  const onProgress = (seconds: number) => log(`still building the Temporal CLI (${seconds} s)`)
  const result = await runCommand(go, ['install', GO_PACKAGE], { timeoutMs: GO_INSTALL_TIMEOUT_MS, onProgress })
  const found = await findExecutable('temporal', await listGoBinaryFolders())
  if (found === undefined) tried.push(`go install ${GO_PACKAGE}: ${lastLines(result.output, 3)}`)
  return found
}

/** Returns the path of the Temporal CLI, installing it if it is missing. Throws when every way to install it fails. */
export async function findTemporal(log: Log): Promise<string> {
  const goFolders = await listGoBinaryFolders()
  const present =
    (await findOnPath('temporal')) ?? (await findExecutable('temporal', goFolders)) ?? (await findDownloaded())
  if (present !== undefined) return present

  const tried = [`temporal on the PATH and in ${goFolders.filter((folder) => folder !== '').join(', ')}: not found`]
  const installed = (await download(log, tried)) ?? (await installWithGo(log, tried))
  if (installed !== undefined) return installed
  const list = tried.map((line) => `  - ${line}`).join('\n')
  throw new Error(
    `The Temporal CLI is needed and could not be installed. Tried:\n${list}\n` +
      'Install it yourself (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS to a Temporal server that runs.',
  )
}
