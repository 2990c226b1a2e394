import { z } from 'zod'
import { DateTime, listOf } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { SkillId, wireId } from './kit/ids.ts'

const SkillStatus = z
  .enum(['active', 'disabled'])
  .meta({ id: 'SkillStatus', description: 'A disabled skill stays in the list and is not used.' })

const SkillSourceType = z.enum(['markdown', 'archive']).meta({ id: 'SkillSourceType' })

export const Skill = z
  .object({
    id: wireId('skill'),
    ref: z.string().meta({ description: 'Its capability, for agents and sessions.' }),
    name: z.string(),
    description: z.string(),
    source_type: SkillSourceType,
    status: SkillStatus,
    version: z.string().meta({ description: 'metadata.version, or "1.0".' }),
    license: z.string().nullish(),
    compatibility: z.string().nullish(),
    metadata: z.record(z.string(), z.unknown()),
    allowed_tools: z.string().nullish(),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'Skill' })
export type Skill = z.infer<typeof Skill>

const SkillFileEntry = z
  .object({
    path: z.string().meta({ description: 'Relative to the skill, without a leading slash.' }),
    content: z.string(),
    encoding: z.enum(['text', 'base64']).optional().meta({ description: 'base64 for a binary file.' }),
  })
  .meta({ id: 'SkillFileEntry' })
export type SkillFileEntry = z.infer<typeof SkillFileEntry>

export const SkillContent = z
  .object({
    skill_md: z.string().meta({ description: 'SKILL.md, unchanged.' }),
    files: z.array(SkillFileEntry).meta({ description: 'The other files of the skill, by path.' }),
  })
  .meta({ id: 'SkillContent' })
export type SkillContent = z.infer<typeof SkillContent>

export const SkillValidationResult = z
  .object({
    valid: z.boolean(),
    name: z.string().nullish(),
    description: z.string().nullish(),
    errors: z.array(z.string()).optional().meta({ description: 'Each as "field: problem".' }),
    warnings: z.array(z.string()).optional(),
  })
  .meta({ id: 'SkillValidationResult' })
export type SkillValidationResult = z.infer<typeof SkillValidationResult>

const skillMd = z
  .string()
  .meta({ description: 'The text of a SKILL.md: YAML front matter with name and description, then Markdown.' })

const CreateSkillRequest = z.object({ skill_md: skillMd }).meta({ id: 'CreateSkillRequest' })
export type CreateSkillRequest = z.infer<typeof CreateSkillRequest>

const ValidateSkillRequest = z.object({ skill_md: skillMd }).meta({ id: 'ValidateSkillRequest' })

const UpdateSkillRequest = z
  .object({ skill_md: skillMd.nullish(), status: SkillStatus.nullish() })
  .meta({ id: 'UpdateSkillRequest' })
export type UpdateSkillRequest = z.infer<typeof UpdateSkillRequest>

export const MAX_ARCHIVE_BYTES = 10 * 1024 * 1024

const params = z.object({ skill_id: SkillId })

export const skillEndpoints = group(
  { tag: 'skills', path: '/v1/skills', access: 'admin' },
  {
    list: {
      operationId: 'listSkills',
      method: 'GET',
      access: 'member',
      summary: 'Lists the skills, newest first',
      responses: { 200: listOf(Skill) },
    },
    create: {
      operationId: 'createSkill',
      method: 'POST',
      summary: 'Creates a skill from the text of a SKILL.md',
      body: CreateSkillRequest,
      creates: true,
      responses: { 201: Skill },
      errors: [422],
    },
    upload: {
      operationId: 'uploadSkill',
      method: 'POST',
      at: '/upload',
      summary: 'Creates a skill from a ZIP archive',
      description:
        'At most 100 entries, 1 MiB each and 10 MiB in all unpacked, with a SKILL.md at the top or in a single top folder.',
      multipart: { file: { field: 'file', maxBytes: MAX_ARCHIVE_BYTES, inMemory: true } },
      creates: true,
      responses: { 201: Skill },
      errors: [422],
    },
    validate: {
      operationId: 'validateSkill',
      method: 'POST',
      at: '/validate',
      access: 'member',
      summary: 'Validates the text of a SKILL.md',
      body: ValidateSkillRequest,
      responses: { 200: SkillValidationResult },
    },
    get: {
      operationId: 'getSkill',
      method: 'GET',
      at: '/{skill_id}',
      access: 'member',
      summary: 'Gets a skill',
      params,
      responses: { 200: Skill },
    },
    content: {
      operationId: 'getSkillContent',
      method: 'GET',
      at: '/{skill_id}/content',
      access: 'member',
      summary: 'Gets the SKILL.md of a skill and its other files',
      params,
      responses: { 200: SkillContent },
    },
    replaceContent: {
      operationId: 'replaceSkillContent',
      method: 'PUT',
      at: '/{skill_id}/content',
      summary: "Replaces a skill's SKILL.md and other files from a ZIP archive",
      description: 'The limits of an upload apply. Id and status stay unchanged.',
      params,
      multipart: { file: { field: 'file', maxBytes: MAX_ARCHIVE_BYTES, inMemory: true } },
      responses: { 200: Skill },
      errors: [409, 422],
    },
    patch: {
      operationId: 'updateSkill',
      method: 'PATCH',
      at: '/{skill_id}',
      summary: 'Changes the SKILL.md of a skill, or its status',
      params,
      body: UpdateSkillRequest,
      responses: { 200: Skill },
      errors: [409, 422],
    },
    delete: {
      operationId: 'deleteSkill',
      method: 'DELETE',
      at: '/{skill_id}',
      summary: 'Deletes a skill; agents that name it continue without it',
      params,
      responses: { 204: null },
    },
  },
)
