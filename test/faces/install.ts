import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { whyNoPython } from '../support/python.ts'

const run = promisify(execFile)
const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const LOCK = path.join(FOLDER, 'package-lock.json')
/** Hash of the lock file that was installed. npm removes it together with the packages. */
const STAMP = path.join(FOLDER, 'node_modules', '.lock-hash')
const PYTHON_CLIENT = 'openai==3.57.0'
/** Environment of Python that has the client. It is kept between runs. */
const PYTHON = path.resolve('.data', 'python', PYTHON_CLIENT)

/** Python that can import `openai`, once it is installed. */
export const python = path.join(PYTHON, 'bin', 'python')

/** Installs the packages of test/faces/package.json, and the Python client, unless they are there already. */
export async function installFaceClients(print: (sentence: string) => void): Promise<void> {
  const hash = createHash('sha256')
    .update(await readFile(LOCK))
    .digest('hex')
  if ((await readFile(STAMP, 'utf8').catch(() => '')) !== hash) {
    print('Installing the clients that the faces are tested with (npm ci in test/faces).')
    await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: FOLDER })
    await writeFile(STAMP, hash)
  }
  if (whyNoPython() === undefined && !existsSync(path.join(PYTHON, '.installed'))) await installPython(print)
}

async function installPython(print: (sentence: string) => void): Promise<void> {
  print(`Installing ${PYTHON_CLIENT} for Python.`)
  await mkdir(path.dirname(PYTHON), { recursive: true })
  await run('python3', ['-m', 'venv', PYTHON])
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PYTHON_CLIENT])
  await writeFile(path.join(PYTHON, '.installed'), '')
}
