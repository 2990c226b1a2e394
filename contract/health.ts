import { z } from 'zod'
import { AuthMode } from './auth.ts'
import { group } from './kit/endpoint.ts'

const Health = z.object({ status: z.string(), version: z.string(), auth_mode: AuthMode }).meta({ id: 'HealthResponse' })
const Readiness = z.object({
  status: z.literal('ready'),
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
        'Reports whether Postgres, Redis and Temporal answer, and whether a worker in this process polls; 503 names the failing part',
      responses: { 200: Readiness },
    },
  },
)
