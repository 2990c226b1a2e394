import { z } from 'zod'
import { AuthMode } from './auth.ts'
import { group } from './kit/endpoint.ts'

const Health = z.object({ status: z.string(), version: z.string(), auth_mode: AuthMode }).meta({ id: 'HealthResponse' })
const Readiness = z.object({
  status: z.enum(['ready', 'degraded']),
  parts: z.object({ postgres: z.string(), redis: z.string(), temporal: z.string(), worker: z.string().optional() }),
})

export const healthEndpoints = group(
  { tag: 'health', path: '/health', access: 'public' },
  {
    live: {
      operationId: 'getHealth',
      method: 'GET',
      summary: 'Reports that the process runs',
      responses: { 200: Health },
    },
    ready: {
      operationId: 'getReadiness',
      method: 'GET',
      at: '/ready',
      summary:
        'Reports whether the process can take requests: degraded while Redis, Temporal or its worker is away, 503 without Postgres',
      responses: { 200: Readiness },
    },
    started: {
      operationId: 'getStarted',
      method: 'GET',
      at: '/started',
      summary: 'Reports that the process has migrated the database and serves requests',
      responses: { 200: z.object({ status: z.literal('started') }) },
    },
  },
)
