import { z } from 'zod'
import { AuthMode } from './auth.ts'
import { defineEndpoint, type Endpoint } from './endpoint.ts'

const Health = z.object({ status: z.string(), version: z.string(), auth_mode: AuthMode }).meta({ id: 'HealthResponse' })
const Readiness = z.object({
  status: z.literal('ready'),
  parts: z.object({ postgres: z.string(), redis: z.string(), temporal: z.string() }),
})

export const healthEndpoints = {
  live: defineEndpoint({
    method: 'GET',
    path: '/health',
    tag: 'health',
    access: 'public',
    summary: 'Says that the process runs',
    responses: { 200: Health },
  }),
  ready: defineEndpoint({
    method: 'GET',
    path: '/health/ready',
    tag: 'health',
    access: 'public',
    summary: 'Says whether Postgres, Redis and Temporal answer; 503 names the failing part',
    responses: { 200: Readiness },
  }),
} satisfies Record<string, Endpoint>
