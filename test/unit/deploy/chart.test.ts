import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { configVariables } from '../../../platform/config.ts'

type Container = {
  image: string
  command: string[]
  env: { name: string; value?: string }[]
  envFrom: { secretRef: { name: string } }[]
  securityContext: object
  volumeMounts: { name: string }[]
  resources: { limits: { memory: string } }
  [probe: string]: unknown
}
type PodSpec = {
  containers: Container[]
  securityContext: object
  volumes: object[]
  automountServiceAccountToken: boolean
}
type Resource = {
  kind: string
  metadata: { name: string; annotations?: Record<string, string> }
  spec: { replicas?: number; template?: { metadata: { labels: object }; spec: PodSpec }; [field: string]: unknown }
}

const CHART = fileURLToPath(new URL('../../../deploy/chart', import.meta.url))
const ROOT = path.join(CHART, '../..')
const run = promisify(execFile)
const readText = (file: string) => readFileSync(path.join(CHART, file), 'utf8')

/** Returns why a command cannot run, or undefined. */
function whyNot(command: string, argument: string): string | undefined {
  try {
    execFileSync(command, [argument], { stdio: 'ignore' })
    return undefined
  } catch {
    return `there is no ${command}`
  }
}
const unless = (reason: string | undefined) => (reason === undefined ? it : it.skip)
const titled = (title: string, reason: string | undefined) => (reason === undefined ? title : `${title} (${reason})`)
const noHelm = whyNot('helm', 'version')
/** The package kubernetes-validate of Python has the schemas of Kubernetes' releases. */
const noSchemas = noHelm ?? whyNot('kubernetes-validate', '--version')

const NEEDED = { temporal: { address: 'temporal:7233' } }
/** Everything that a value can switch on. */
const ALL = {
  ...NEEDED,
  replicas: 3,
  image: { digest: `sha256:${'a'.repeat(64)}` },
  imagePullSecrets: [{ name: 'registry' }],
  worker: { separate: true, replicas: 4 },
  config: { AUTH_BASE_URL: 'https://agents.example.com', BASH_MAX_PROCESSES: 2, CONSOLE: false },
  env: [{ name: 'DATABASE_URL', valueFrom: { secretKeyRef: { name: 'postgres', key: 'uri' } } }],
  certificates: { secret: 'certificates', ca: 'ca.crt' },
  migration: { secrets: ['postgres-owner'], noWayBack: true },
  ingress: { enabled: true },
  autoscaling: {
    enabled: true,
    metrics: [
      { type: 'Pods', pods: { metric: { name: 'turns' }, target: { type: 'AverageValue', averageValue: '100' } } },
    ],
  },
  networkPolicy: { apiFrom: [{ namespaceSelector: {} }], metricsFrom: [{ podSelector: {} }] },
  podAnnotations: { a: 'b' },
  podLabels: { team: 'agents' },
  nodeSelector: { pool: 'agents' },
  tolerations: [{ key: 'agents', operator: 'Exists' }],
  affinity: { podAntiAffinity: {} },
  priorityClassName: 'high',
  service: { annotations: { c: 'd' } },
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'chart-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Returns the text that Helm renders with these values. Rejects with what Helm says. */
async function render(values: object): Promise<string> {
  const file = path.join(folder, 'values.json')
  await writeFile(file, JSON.stringify(values))
  const { stdout } = await run('helm', ['template', 'agents', CHART, '--kube-version', '1.31', '--values', file])
  return stdout
}

async function resourcesOf(values: object): Promise<Resource[]> {
  return parseAllDocuments(await render(values)).map((document) => document.toJS())
}

const podOf = ({ spec }: Resource): PodSpec[] => (spec.template === undefined ? [] : [spec.template.spec])
const named = (resources: Resource[], kind: string) => resources.filter((one) => one.kind === kind)
const containerOf = (resource: Resource | undefined) => resource?.spec.template?.spec.containers[0]
const variables = (container: Container | undefined) =>
  Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]))

describe('the chart', () => {
  it('has the version of package.json', () => {
    const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
    expect(parse(readText('Chart.yaml'))).toMatchObject({ version, appVersion: version })
  })

  it('describes all of its values, and no other', () => {
    const { properties, ...schema } = JSON.parse(readText('values.schema.json'))
    const values = parse(readText('values.yaml'))
    const validate = new Ajv({ strict: false, allErrors: true }).compile({ properties, ...schema })
    validate(values)
    expect(validate.errors).toBeNull()
    // `global` is Helm's own.
    expect(Object.keys(properties).sort()).toEqual([...Object.keys(values), 'global'].sort())
    for (const [name, { properties: inner }] of Object.entries<{ properties?: object }>(properties))
      if (inner !== undefined) expect([name, Object.keys(values[name])]).toEqual([name, Object.keys(inner)])
  })

  it('names settings that exist', () => {
    const text = readText('values.yaml')
    const named = [...text.matchAll(/\b(?:AUTH|DEFAULT|DATABASE|REDIS|SECRETS|BASH)_[A-Z_]+\b/g)].map(([name]) => name)
    expect(named.filter((name) => !configVariables.includes(name))).toEqual([])
  })

  unless(noHelm)(titled('passes the check of helm', noHelm), async () => {
    const { stdout } = await run('helm', ['lint', '--strict', CHART, '--set', 'temporal.address=temporal:7233'])
    expect(stdout).toContain('0 chart(s) failed')
  })

  unless(noSchemas)(titled("follows Kubernetes' schemas", noSchemas), async () => {
    for (const [name, values] of Object.entries({ needed: NEEDED, all: ALL })) {
      const file = path.join(folder, `${name}.yaml`)
      await writeFile(file, await render(values))
      for (const release of ['1.29', '1.35']) {
        const { stderr, stdout } = await run('kubernetes-validate', ['--strict', '--kubernetes-version', release, file])
        expect(`${stdout}${stderr}`).toContain('passed')
      }
    }
  })

  unless(noHelm)(titled('runs replicas of the whole service, after its migration', noHelm), async () => {
    const resources = await resourcesOf(NEEDED)
    expect(resources.map(({ kind }) => kind).sort()).toEqual(
      ['Deployment', 'Job', 'NetworkPolicy', 'PodDisruptionBudget', 'Service'].sort(),
    )
    const [deployment] = named(resources, 'Deployment')
    const [job] = named(resources, 'Job')
    expect(deployment?.spec.replicas).toBe(2)
    expect(containerOf(deployment)).toMatchObject({
      command: ['node', 'main.ts'],
      startupProbe: { httpGet: { path: '/health/started' } },
      livenessProbe: { httpGet: { path: '/health' } },
      readinessProbe: { httpGet: { path: '/health/ready' } },
    })
    expect(variables(containerOf(deployment))).toMatchObject({ MIGRATE_ON_START: 'false', TRUSTED_PROXIES: '1' })
    expect(containerOf(job)?.command).toEqual(['node', 'deploy/migrate.ts'])
    expect(job?.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' })
  })

  unless(noHelm)(titled('gives pods no rights, and nothing to write to but /tmp', noHelm), async () => {
    const pods = (await resourcesOf(ALL)).flatMap(podOf)
    expect(pods).toHaveLength(3)
    for (const { containers, ...pod } of pods) {
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '1Gi' } }, { name: 'certificates' }],
      })
      expect(containers).toHaveLength(1)
      expect(containers[0]).toMatchObject({
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        resources: { limits: { memory: expect.any(String) } },
      })
    }
  })

  unless(noHelm)(titled('separates the roles, each with its number of pods', noHelm), async () => {
    const resources = await resourcesOf({ ...ALL, autoscaling: { enabled: false } })
    const deployments = named(resources, 'Deployment')
    expect(deployments.map((one) => [one.metadata.name, one.spec.replicas, containerOf(one)?.command])).toEqual([
      ['agents-agent-session-service', 3, ['node', 'api/main.ts']],
      ['agents-agent-session-service-worker', 4, ['node', 'worker/main.ts']],
    ])
    expect(named(resources, 'PodDisruptionBudget')).toHaveLength(2)
    expect(named(resources, 'Service')[0]?.spec.selector).toMatchObject({ 'app.kubernetes.io/component': 'api' })
  })

  unless(noHelm)(titled('scales the pods that run turns', noHelm), async () => {
    const replicasOf = (resources: Resource[]) => named(resources, 'Deployment').map(({ spec }) => spec.replicas)
    const [autoscaler] = named(await resourcesOf(ALL), 'HorizontalPodAutoscaler')
    expect(autoscaler?.spec.scaleTargetRef).toMatchObject({ name: 'agents-agent-session-service-worker' })
    expect(autoscaler?.spec.metrics).toHaveLength(2)
    expect(replicasOf(await resourcesOf(ALL))).toEqual([3, undefined])
    expect(replicasOf(await resourcesOf({ ...NEEDED, autoscaling: { enabled: true } }))).toEqual([undefined])
  })

  unless(noHelm)(titled('passes settings on: values, then Secrets', noHelm), async () => {
    const resources = await resourcesOf(ALL)
    const container = containerOf(named(resources, 'Deployment')[0])
    expect(container?.image).toBe(`agent-session-service@sha256:${'a'.repeat(64)}`)
    expect(variables(container)).toMatchObject({
      AUTH_BASE_URL: 'https://agents.example.com',
      BASH_MAX_PROCESSES: '2',
      CONSOLE: 'false',
      NODE_EXTRA_CA_CERTS: '/certificates/ca.crt',
    })
    const sources = (one: Container | undefined) => one?.envFrom.map(({ secretRef }) => secretRef.name)
    expect(sources(container)).toEqual(['agent-session-service'])
    const job = containerOf(named(resources, 'Job')[0])
    expect(sources(job)).toEqual(['agent-session-service', 'postgres-owner'])
    expect(job?.command).toEqual(['node', 'deploy/migrate.ts', '--no-way-back'])
  })

  unless(noHelm).each([
    ['no address of Temporal', {}, 'temporal.address is needed'],
    ['an address without a port', { temporal: { address: 'https://temporal' } }, 'address'],
    ['a value that does not exist', { ...NEEDED, replicaCount: 3 }, 'replicaCount'],
    ['a setting that another value sets', { ...NEEDED, config: { TRUSTED_PROXIES: '2' } }, 'TRUSTED_PROXIES'],
    ['a size without a unit', { ...NEEDED, tmp: { sizeLimit: '1' } }, 'sizeLimit'],
    ['metrics on the port of the API', { ...NEEDED, metrics: { port: 9300 } }, 'port'],
  ])(titled('refuses %s', noHelm), async (_what, values, named) => {
    await expect(render(values)).rejects.toThrow(named)
  })
})
