import { registerHooks } from 'node:module'
import type { UserConfig } from '@hey-api/openapi-ts'

/** The `typescript` package of version 6 would put its `tsc` in the place of the newer one. */
const TYPESCRIPT_6 = '@ts-morph/common/dist/typescript.js'

/** Generates TypeScript from an OpenAPI document into a folder. */
export async function generateTypeScript(
  document: object,
  folder: string,
  plugins: UserConfig['plugins'],
): Promise<void> {
  // The generator uses the API of TypeScript 6, which version 7 does not have.
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'typescript' ? TYPESCRIPT_6 : specifier, context),
  })
  const { createClient } = await import('@hey-api/openapi-ts')
  await createClient({
    input: structuredClone(document) as Record<string, unknown>,
    output: { path: folder, module: { extension: '.ts' } },
    logs: { level: 'silent' },
    plugins,
  })
}
