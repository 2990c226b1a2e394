/** Generates the typed client from the contract, and builds it into client/dist. scripts/bootstrap.mjs runs it. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import path from 'node:path'
import { promisify } from 'node:util'
import { openapiDocument } from '../api/http/openapi.ts'
import { endpoints } from '../contract/index.ts'
import { ROOT } from '../dev/development.ts'

const folder = path.join(ROOT, 'client')
const generated = path.join(folder, 'src', 'generated')
const dist = path.join(folder, 'dist')
/** The `typescript` package of version 6 would put its `tsc` in the place of the newer one. */
const TYPESCRIPT_6 = '@ts-morph/common/dist/typescript.js'
const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))

async function generate(): Promise<void> {
  // The generator uses the API of TypeScript 6, which version 7 does not have.
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'typescript' ? TYPESCRIPT_6 : specifier, context),
  })
  const { createClient } = await import('@hey-api/openapi-ts')
  const input = openapiDocument(endpoints, { version, prefix: '', isOpen: false })
  for (const { responses } of Object.values(input.paths).flatMap(Object.values)) {
    // An operation that answers JSON unless bytes are asked for would have a type that is either everywhere.
    if (responses[200]?.content?.['application/json'] !== undefined) delete responses[206]
  }
  await createClient({
    input: structuredClone(input),
    output: { path: generated, module: { extension: '.ts' } },
    logs: { level: 'silent' },
    plugins: [
      '@hey-api/typescript',
      { name: '@hey-api/client-fetch', throwOnError: true },
      {
        name: '@hey-api/sdk',
        auth: false,
        responseStyle: 'data',
        operations: { strategy: 'single', containerName: 'Api', methods: 'instance' },
      },
    ],
  })
}

async function compile(): Promise<void> {
  await rm(dist, { recursive: true, force: true })
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(({ stdout }) => {
    throw new Error(`the client does not compile:\n${stdout}`)
  })
}

await generate()
await compile()
