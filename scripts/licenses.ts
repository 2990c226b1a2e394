/**
 * node scripts/licenses.ts: prints the licences of the image's packages that have no text of their own in node_modules.
 * The Dockerfile runs it. The builds of client, element and console keep the licences of what they bundle.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Metafile } from 'esbuild'
import { findNeeded } from './prune.ts'

const ROOT = path.dirname(import.meta.dirname)

type PackageJson = {
  name: string
  version: string
  license?: string
  author?: string | { name: string }
  homepage?: string
}

/** Returns the text of a package's licence, from its folder. Undefined if it has none. */
function ownText(folder: string): string | undefined {
  const file = readdirSync(path.join(ROOT, folder)).find((name) => /^(licen[cs]e|copying)([.-]|$)/i.test(name))
  return file && readFileSync(path.join(ROOT, folder, file), 'utf8').trim()
}

const packageOf = (folder: string): PackageJson =>
  JSON.parse(readFileSync(path.join(ROOT, folder, 'package.json'), 'utf8'))

const headOf = ({ name, version, license = 'unknown' }: PackageJson): string => `${name} ${version}: ${license}`

/** Lists the folders of the packages in a bundle. */
export const bundledPackages = ({ inputs }: Pick<Metafile, 'inputs'>): string[] =>
  [
    ...new Set(
      Object.keys(inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0] ?? []),
    ),
  ].map((folder) => folder.slice(folder.indexOf('node_modules/')))

/** Returns the licences of the packages in a bundle, which must go with every copy of it. Throws if one has no text. */
export function licencesOf(metafile: Pick<Metafile, 'inputs'>): string {
  const texts = bundledPackages(metafile).map((folder) => {
    const text = ownText(folder)
    if (text === undefined) throw new Error(`${folder} has no file with its licence, which a bundle must contain`)
    return `${headOf(packageOf(folder))}\n\n${text}\n`
  })
  return texts.sort().join('\n\n')
}

/** Begins a bundle with the licences of its packages, as a comment. */
export async function addLicences(file: string, metafile: Metafile): Promise<void> {
  const text = licencesOf(metafile)
  if (text !== '') await writeFile(file, `/*!\n${text.replaceAll('*/', '* /')}*/\n${await readFile(file, 'utf8')}`)
}

/** Text of the MIT licence, for packages that only name it. */
const mitText = (holder: string): string => `Copyright (c) ${holder}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

/** Files of the image's system with the texts of licences that are longer. */
const COMMON: Record<string, string> = {
  'Apache-2.0': '/usr/share/common-licenses/Apache-2.0',
  'LGPL-3.0-or-later': '/usr/share/common-licenses/LGPL-3',
}

function textFor(folder: string): string {
  const { name, license = '', author } = packageOf(folder)
  const holder = typeof author === 'object' ? author.name : author
  if (license === 'MIT') return mitText(holder ?? `the authors of ${name}`)
  const common = COMMON[license]
  if (common === undefined) throw new Error(`${folder} has no file with its licence, and ${license} has no known text`)
  return `The text of the licence is in ${common}. The package and its sources: ${packageOf(folder).homepage ?? name}`
}

/** Returns the licences of the installed packages of the image that bring no text of their own. */
export function missingLicences(): string {
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'))
  const installed = [...findNeeded(packages)].filter((folder) => existsSync(path.join(ROOT, folder)))
  const texts = installed
    .filter((folder) => ownText(folder) === undefined)
    .map((folder) => `${headOf(packageOf(folder))}\n\n${textFor(folder)}\n`)
  return texts.sort().join('\n\n')
}

if (import.meta.main) {
  process.stdout.write(
    `The text of a package's licence is in its folder in node_modules. These packages bring none:\n\n${missingLicences()}`,
  )
}
