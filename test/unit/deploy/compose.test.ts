import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { DEFAULT_MODELS } from '../../../domain/models/llm/predefined.ts'
import { configVariables } from '../../../platform/config.ts'
import { Variables } from '../../../platform/variables.ts'
import { configurationPage } from '../../../scripts/configuration/page.ts'

type ComposeService = {
  image: string
  environment?: Record<string, string>
  mem_limit?: string
  pids_limit?: number
  logging?: { options?: Record<string, string> }
  tmpfs?: string[]
  volumes?: string[]
  healthcheck?: { test: string[] }
  restart?: string
  ports?: string[]
  depends_on?: Record<string, { condition: string }>
}

type ComposeFile = {
  services: Record<string, ComposeService>
}

/** Settings that lead to the file's other services, the port in the container and the number of proxies. */
const OWN_SETTINGS = ['DATABASE_URL', 'REDIS_URL', 'TEMPORAL_ADDRESS', 'PORT', 'TRUSTED_PROXIES']
/** Settings that Node and OpenTelemetry read themselves. */
const OF_LIBRARIES = [
  'NODE_EXTRA_CA_CERTS',
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_EXPORTER_OTLP_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_KEY',
]
/** Settings that the image has itself. */
const OF_THE_IMAGE = ['HOST']

const readText = (path: string) => readFile(fileURLToPath(new URL(path, import.meta.url)), 'utf8')

async function readComposeFile(): Promise<ComposeFile> {
  return parse(await readText('../../../docker-compose.yml'), { merge: true })
}

async function compileSchema() {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  return ajv.compile(JSON.parse(await readText('./compose-spec.schema.json')))
}

describe('docker-compose.yml', () => {
  test('follows the Compose Specification', async () => {
    const validate = await compileSchema()
    validate(await readComposeFile())
    expect(validate.errors).toBeNull()
  })

  test.each([
    ['an unknown key', { services: { api: { image: 'a', helthcheck: {} } } }],
    ['a restart policy that is not a text', { services: { api: { image: 'a', restart: 5 } } }],
    ['an unknown dependency condition', { services: { api: { image: 'a', depends_on: { b: { condition: 'up' } } } } }],
    ['a health check that is not a command', { services: { api: { image: 'a', healthcheck: { test: 5 } } } }],
  ])('would be refused with %s', async (_what, broken) => {
    const validate = await compileSchema()
    expect(validate(broken)).toBe(false)
  })

  test('bounds what every service can take from the machine', async () => {
    const { services } = await readComposeFile()
    for (const [name, { mem_limit, pids_limit, logging, tmpfs = [] }] of Object.entries(services)) {
      expect([name, mem_limit, pids_limit]).toEqual([name, expect.any(String), expect.any(Number)])
      expect([name, logging?.options]).toEqual([
        name,
        { 'max-size': expect.any(String), 'max-file': expect.any(String) },
      ])
      for (const folder of tmpfs) expect(folder).toMatch(/:size=\d+[mg]$/)
    }
  })

  test('gives every service a restart policy and a health check', async () => {
    const { services } = await readComposeFile()
    const without = (has: (service: ComposeService) => boolean) =>
      Object.entries(services).flatMap(([name, service]) => (has(service) ? [] : [name]))
    expect(without(({ restart }) => restart === 'unless-stopped')).toEqual([])
    expect(without(({ healthcheck }) => healthcheck !== undefined)).toEqual([])
  })

  test('lets nothing start before what it depends on is healthy', async () => {
    const { services } = await readComposeFile()
    const dependencies = Object.values(services).flatMap((service) => Object.entries(service.depends_on ?? {}))
    for (const [target, { condition }] of dependencies) {
      expect(Object.keys(services)).toContain(target)
      expect(condition).toBe('service_healthy')
    }
    expect(Object.keys(services.service?.depends_on ?? {})).toEqual(['postgres', 'redis', 'temporal'])
  })

  test('publishes the proxy and the UI of Temporal, on the loopback interface unless told otherwise', async () => {
    const { services } = await readComposeFile()
    const published = Object.entries(services).flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]))
    expect(published).toEqual([
      ['proxy', expect.stringMatching(/^\$\{BIND_ADDRESS:-127\.0\.0\.1\}:.*:9300$/)],
      ['temporal-ui', expect.stringMatching(/^127\.0\.0\.1:.*:8080$/)],
    ])
  })

  test('passes every setting to the service', async () => {
    const { services } = await readComposeFile()
    const environment = services.service?.environment ?? {}
    const passed = Object.entries(environment).filter(
      ([variable]) => ![...OWN_SETTINGS, ...OF_LIBRARIES].includes(variable),
    )
    const expected = [...configVariables.filter((one) => !OF_THE_IMAGE.includes(one)), ...OF_LIBRARIES]
    expect(Object.keys(environment).sort()).toEqual(expected.sort())
    // An empty value counts as absent, so the service's defaults hold.
    for (const [variable, value] of passed) {
      expect([variable, value]).toEqual([variable, expect.stringMatching(`^\\$\\{${variable}:[-?][^}]*\\}$`)])
    }
    const dockerfile = await readText('../../../Dockerfile')
    for (const variable of OF_THE_IMAGE) expect(dockerfile).toContain(` ${variable}=`)
  })

  test('and the image have the version of package.json', async () => {
    const { version } = JSON.parse(await readText('../../../package.json'))
    const { services } = await readComposeFile()
    expect(services.service?.image).toBe(`\${IMAGE:-agent-session-service:${version}}`)
    expect(await readText('../../../Dockerfile')).toContain(`\nARG VERSION=${version}\n`)
  })

  test('has a proxy whose callers cannot choose their address', async () => {
    const { services } = await readComposeFile()
    expect(services.service?.environment?.TRUSTED_PROXIES).toBe('1')
    expect(services.proxy?.environment?.PUBLISHED_ON).toMatch(/^\$\{BIND_ADDRESS:-127\.0\.0\.1\}$/)
  })

  test('contains no password', async () => {
    const text = await readText('../../../docker-compose.yml')
    const secrets = text.match(/(PASSWORD|PWD|SECRET|KEY|KEY_PREVIOUS): .*/g) ?? []
    expect(secrets.length).toBeGreaterThan(6)
    for (const line of secrets) expect(line).toMatch(/: \$\{[A-Z_]+:[-?][^}]*\}$/)
    const defaults = secrets.map((line) => /:-(.*)\}/.exec(line)?.[1]).filter(Boolean)
    expect(defaults).toEqual([])
  })

  test('lets in nobody who has not signed in', async () => {
    const text = await readText('../../../docker-compose.yml')
    expect(text).toMatch(/AUTH_MODE: \$\{AUTH_MODE:-full\}/)
    expect(text).toContain('AUTH_JWT_SECRET: ${AUTH_JWT_SECRET:?')
  })

  test('asks for the key of secrets before anything starts', async () => {
    const { services } = await readComposeFile()
    expect(services.service?.environment?.SECRETS_ENCRYPTION_KEY).toMatch(/^\$\{SECRETS_ENCRYPTION_KEY:\?/)
  })
})

describe('deploy/tls.yml', () => {
  test('adds a port with TLS to the proxy, which then believes nobody', async () => {
    const tls: ComposeFile = parse(await readText('../../../deploy/tls.yml'))
    const { services } = await readComposeFile()
    const validate = await compileSchema()
    validate(tls)
    expect(validate.errors).toBeNull()
    expect(Object.keys(tls.services)).toEqual(['proxy'])
    expect(services.proxy?.environment).toHaveProperty('PUBLISHED_ON')
    expect(tls.services.proxy?.environment).toEqual({ PUBLISHED_ON: '0.0.0.0' })
    expect(tls.services.proxy?.ports).toEqual([expect.stringMatching(/:9443$/)])
  })
})

describe('docs/configuration.md', () => {
  test('lists every setting, and no other', async () => {
    const rows = (await readText('../../../docs/configuration.md')).matchAll(/^\| `([A-Z][A-Z_]+)`/gm)
    expect([...rows].map(([, name]) => name).sort()).toEqual([...configVariables].sort())
  })

  test('is as `npm run configuration` writes it, with a description of each setting', async () => {
    expect(await readText('../../../docs/configuration.md')).toBe(configurationPage())
    for (const [name, { description }] of Object.entries(Variables.shape))
      expect([name, description]).toEqual([name, expect.stringMatching(/^\S.*\.$/)])
  })

  test('names the default models', () => {
    for (const model of Object.values(DEFAULT_MODELS)) expect(configurationPage()).toContain(`\`${model}\``)
  })
})
