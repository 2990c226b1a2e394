/** npm run configuration: writes docs/configuration.md from the descriptions of the variables. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ROOT } from '../dev/development.ts'
import { print } from '../dev/terminal.ts'
import { configurationPage } from './configuration/page.ts'

const FILE = 'docs/configuration.md'
await writeFile(path.join(ROOT, FILE), configurationPage())
print(FILE)
