import { agentVersionEndpoints } from './agent-versions.ts'
import { agentEndpoints } from './agents.ts'
import { auditEndpoints } from './audit.ts'
import { authEndpoints } from './auth.ts'
import { budgetEndpoints } from './budgets.ts'
import { capabilityEndpoints } from './capabilities.ts'
import { compactionEndpoints } from './compaction.ts'
import { databaseEndpoints } from './databases.ts'
import { durableEndpoints } from './durable.ts'
import { eventEndpoints } from './events.ts'
import { fileEndpoints } from './files.ts'
import { forkEndpoints } from './forks.ts'
import { healthEndpoints } from './health.ts'
import { imageEndpoints } from './images.ts'
import { invitationEndpoints } from './invitations.ts'
import type { Endpoint } from './kit/endpoint.ts'
import { llmModelEndpoints } from './llm-models.ts'
import { llmProviderEndpoints } from './llm-providers.ts'
import { mcpReadingEndpoints } from './mcp-reading.ts'
import { mcpServerEndpoints, mcpSignInEndpoints } from './mcp-servers.ts'
import { memberEndpoints } from './members.ts'
import { messageEndpoints } from './messages.ts'
import { organizationEventEndpoints } from './organization-events.ts'
import { organizationEndpoints } from './organizations.ts'
import { runEndpoints } from './runs.ts'
import { executionEndpoints, scheduleEndpoints } from './schedules.ts'
import { secretEndpoints } from './secrets.ts'
import { sessionEndpoints } from './sessions.ts'
import { skillEndpoints } from './skills.ts'
import { storageEndpoints } from './storage.ts'
import { taskQueueEndpoints } from './task-queues.ts'
import { turnEndpoints } from './turns.ts'
import { usageEndpoints } from './usage.ts'
import { userEndpoints } from './users.ts'
import { webhookEndpoints } from './webhooks.ts'

/** Operations of the service, in the order in which a reader of the API reference needs them. */
export const endpoints: Endpoint[] = [
  sessionEndpoints,
  forkEndpoints,
  agentEndpoints,
  agentVersionEndpoints,
  messageEndpoints,
  compactionEndpoints,
  eventEndpoints,
  organizationEventEndpoints,
  turnEndpoints,
  runEndpoints,
  fileEndpoints,
  databaseEndpoints,
  storageEndpoints,
  imageEndpoints,
  capabilityEndpoints,
  skillEndpoints,
  mcpServerEndpoints,
  mcpReadingEndpoints,
  taskQueueEndpoints,
  mcpSignInEndpoints,
  secretEndpoints,
  llmProviderEndpoints,
  llmModelEndpoints,
  scheduleEndpoints,
  executionEndpoints,
  budgetEndpoints,
  usageEndpoints,
  webhookEndpoints,
  organizationEndpoints,
  memberEndpoints,
  invitationEndpoints,
  userEndpoints,
  authEndpoints,
  auditEndpoints,
  durableEndpoints,
  healthEndpoints,
].flatMap((group) => Object.values<Endpoint>(group))
