import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8')

/** The list of docs/architecture.md, in its order. */
const layers = [...(/```\n(client\/[^`]*)```/.exec(page)?.[1] ?? '').matchAll(/^(\S+)/gm)].map(([layer]) => layer)

/** Folders of the service that may import a package, by its name or its scope. Node's own modules are everybody's. */
const OWNERS: Record<string, string[]> = {
  '@ai-sdk': ['domain/models/llm/providers/'],
  '@fastify/busboy': ['api/http/'],
  '@koa': ['api/'],
  '@modelcontextprotocol': ['domain/tools/mcp/', 'api/faces/mcp/'],
  '@node-rs/argon2': ['domain/identity/auth/'],
  '@opentelemetry': ['platform/tracing/'],
  '@preact/signals': ['console/'],
  '@prisma': ['platform/postgres/'],
  '@temporalio': ['platform/temporal/', 'worker/', 'workflows/', 'deploy/'],
  'agent-session-client': ['embed/', 'console/'],
  ajv: ['domain/tools/capabilities/arguments/'],
  dompurify: ['console/'],
  'eventsource-parser': ['client/'],
  htm: ['console/'],
  ioredis: ['platform/', 'domain/kit/', 'domain/events/live/'],
  'ipaddr.js': ['lib/outgoing/', 'api/auth/'],
  jose: ['domain/identity/auth/'],
  'just-bash': ['domain/tools/capabilities/virtual-bash/'],
  koa: ['api/'],
  'koa-body': ['api/http/'],
  marked: ['console/'],
  'openid-client': ['domain/identity/auth/'],

  pg: ['platform/', 'worker/'],
  pino: ['platform/', 'domain/kit/', 'domain/events/live/', 'api/http/'],
  preact: ['console/'],
  'prom-client': ['platform/metrics/'],
  'csv-stringify': ['api/http/'],
  'rate-limiter-flexible': ['api/auth/'],
  re2js: ['domain/session-data/files/grep/'],
  sharp: ['domain/session-data/images/', 'domain/conversation/'],
  turndown: ['domain/tools/capabilities/web-page/'],
  undici: ['lib/outgoing/'],
  uuid: ['domain/kit/'],
  yaml: ['domain/kit/yaml/'],
  yauzl: ['domain/tools/skills/archive/'],
  zod: ['contract/', 'domain/', 'api/http/', 'api/faces/', 'platform/'],
}

/** The types of the activities that workflows call are in the layer that runs them. */
const EXCEPTION = 'workflows/activities.ts imports worker/activities.ts'

/** Matches static and dynamic imports, re-exports, and files named by `new URL`, such as a thread's entry file. */
const IMPORTS =
  /^(?:import|export)\s[^'";]*?\bfrom\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)|\bnew URL\('(\.[^']+\.(?:ts|mjs))', import\.meta\.url\)/gm

const isIn = (file: string, folder: string): boolean =>
  file === folder || (folder.endsWith('/') && file.startsWith(folder))
const roomOf = (file: string): string => `${file.split('/', 2).join('/')}/`
const isDeps = (file: string): boolean => /^domain\/[^/]+\/deps\.ts$/.test(file)

/** Returns the place of a file's layer. A room's `deps.ts` belongs to the room's first layer. */
function layerOf(file: string): number {
  if (isDeps(file)) return layers.findIndex((layer) => isIn(layer, roomOf(file)))
  const own = layers.filter((layer) => isIn(file, layer))
  return layers.indexOf(own.sort((a, b) => b.length - a.length)[0] ?? '')
}

/** Returns a sentence for each import of a file that breaks a rule. */
const problemsOf = (file: string, text: string): string[] =>
  [...text.matchAll(IMPORTS)].flatMap(([, ...specifiers]) => {
    const specifier = specifiers.find((one) => one !== undefined) ?? ''
    const to = specifier.startsWith('.') ? path.join(path.dirname(file), specifier) : specifier
    const says = `${file} imports ${to}`
    if (specifier.startsWith('node:') || says === EXCEPTION) return []
    if (!specifier.startsWith('.')) {
      if (isIn(file, 'dev/') || isIn(file, 'scripts/')) return []
      const owners = OWNERS[to.split('/', to.startsWith('@') ? 2 : 1).join('/')] ?? OWNERS[to.split('/')[0] ?? '']
      return owners?.some((owner) => file.startsWith(owner)) ? [] : [`${says}, which is not its package`]
    }
    const isOwnPart = isDeps(file) && roomOf(file) === roomOf(to)
    return isOwnPart || layerOf(to) <= layerOf(file) ? [] : [`${says}, which is in a later layer`]
  })

describe('the layers of docs/architecture.md', () => {
  const exclude = ['**/generated/**', '**/dist/**']
  const globs = layers.map((layer) => (layer.endsWith('/') ? `${layer}**/*.{ts,mjs}` : layer))
  const sources = [...new Set(globSync(globs, { cwd: root, exclude }))]

  it('are kept by every file', () => {
    expect(sources.length).toBeGreaterThan(600)
    expect(sources.flatMap((file) => problemsOf(file, readFileSync(path.join(root, file), 'utf8')))).toEqual([])
  })

  it.each([
    ['domain/events/log/x.ts', "import { y } from '../../turns/queue.ts'"],
    ['domain/events/log/x.ts', "import type { y } from '../../turns/queue.ts'"],
    ['domain/turns/x.ts', "import {\n  y,\n} from './run/reason.ts'"],
    ['lib/x.ts', "export * from '../contract/errors.ts'"],
    ['domain/kit/x.ts', `const y = await ${'import'}('../deps.ts')`],
    ['domain/kit/x.ts', `const file = new ${'URL'}('../../api/thread.ts', import.meta.url)`],
    ['domain/kit/x.ts', "import Koa from 'koa'"],
    ['domain/kit/x.ts', "import { x } from '@ai-sdk/openai'"],
    ['domain/kit/x.ts', "import { x } from 'left-pad'"],
  ])('forbid %s to contain %s', (file, text) => {
    expect(problemsOf(file, text)).toHaveLength(1)
  })

  it.each([
    ['domain/turns/run/x.ts', "import { y } from '../queue.ts'\nimport { z } from 'node:path'"],
    ['domain/turns/deps.ts', "import type { y } from './run/running-attempts.ts'"],
    ['domain/models/llm/providers/x.ts', "import { x } from '@ai-sdk/openai'"],
  ])('allow %s to contain %s', (file, text) => {
    expect(problemsOf(file, text)).toEqual([])
  })
})
