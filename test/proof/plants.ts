import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { applyEdits, type Edit } from './edits.ts'

/** Plants in the forms in which they get into a world. */
export type PreparedPlants = {
  /** Edits of modules, made when a process loads them. */
  edits: Edit[]
  /** SQL functions with their edits, to run after the migrations. */
  sql: string[]
}

const FUNCTIONS = 'prisma/functions/'
const WORKFLOWS = 'workflows/'

/** Prepares plants. Throws when one does not fit its source. */
export function preparePlants(plants: Edit[]): PreparedPlants {
  const inFolder = (folder: string) => plants.filter(({ file }) => file.startsWith(folder))
  const functions = byFile(inFolder(FUNCTIONS))
  const workflows = inFolder(WORKFLOWS)
  const modules = plants.filter(({ file }) => !file.startsWith(FUNCTIONS) && !file.startsWith(WORKFLOWS))
  return {
    edits: [...modules, ...(workflows.length === 0 ? [] : useCopy(copyWorkflows(workflows)))],
    sql: functions.map(([file, edits]) => applyEdits(readFileSync(file, 'utf8'), edits)),
  }
}

const byFile = (edits: Edit[]): [file: string, edits: Edit[]][] =>
  [...new Set(edits.map(({ file }) => file))].map((file) => [file, edits.filter((edit) => edit.file === file)])

/** Copies the workflows with their edits, from which workers make another bundle. Returns the folder, named by the edits. */
function copyWorkflows(edits: Edit[]): string {
  const name = createHash('sha256').update(JSON.stringify(edits)).digest('hex').slice(0, 16)
  const folder = path.resolve('.data', 'proof', name)
  if (!existsSync(folder)) mkdirSync(folder, { recursive: true })
  cpSync('workflows', path.join(folder, 'workflows'), { recursive: true })
  for (const [file, ofFile] of byFile(edits)) {
    writeFileSync(path.join(folder, file), applyEdits(readFileSync(file, 'utf8'), ofFile))
  }
  return folder
}

const useCopy = (folder: string): Edit[] =>
  ['workflows', 'dist'].map((name) => ({
    file: 'worker/bundle.ts',
    find: `new URL('../${name}', import.meta.url)`,
    replace: `new URL(${JSON.stringify(`file://${path.join(folder, name)}`)})`,
  }))
