import type { CreateSkillRequest, Skill, UpdateSkillRequest } from 'agent-session-client'
import { StatusBadge } from '../parts/badge.ts'
import { commandFor } from '../parts/command.ts'
import { STATUS } from '../parts/common-fields.ts'
import { viewOf } from '../parts/list-view.ts'
import type { Resource } from '../parts/resource.ts'
import { api, isAdministrator } from '../service.ts'
import { html } from '../ui.ts'

const EXAMPLE = `---
name: release-notes
description: How to write release notes. Use it when asked for them.
---

Write one line for each change that users see, newest first.
`

type SkillWithText = Skill & { skill_md?: string }

const skills: Resource<SkillWithText> = {
  path: 'skills',
  title: 'Skills',
  icon: 'skill',
  one: 'skill',
  mayWrite: isAdministrator,
  about: 'Instructions that an agent reads only when a task calls for them. Add a skill to an agent as a capability.',
  example: () => commandFor('/v1/skills', { skill_md: EXAMPLE }),
  list: async () => (await api.skills.list()).data,
  get: async (id) => {
    const path = { skill_id: id }
    const [skill, { skill_md }] = await Promise.all([api.skills.get(path), api.skills.getSkillContent(path)])
    return { ...skill, skill_md }
  },
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Description', cell: ({ description }) => html`<span class="clamp" dir="auto">${description}</span>` },
    { title: 'Version', isMinor: true, cell: ({ version }) => version },
    { title: 'Status', cell: ({ status }) => html`<${StatusBadge} status=${status} />` },
  ],
  fields: (item) => [
    {
      name: 'skill_md',
      label: 'SKILL.md',
      kind: 'longtext',
      isRequired: true,
      rows: 18,
      limits: { class: 'mono', spellcheck: 'false' },
      hint: 'A name and a description between two lines of ---, then the instructions in Markdown.',
    },
    ...(item === undefined ? [] : [STATUS]),
  ],
  badge: ({ status }) => html`<${StatusBadge} status=${status} />`,
  defaults: { skill_md: EXAMPLE },
  valuesOf: ({ skill_md, status }) => ({ skill_md, status }),
  create: (values) => api.skills.create(values as CreateSkillRequest),
  update: ({ id }, changes) => api.skills.update({ skill_id: id, ...(changes as UpdateSkillRequest) }),
  remove: {
    label: 'Delete',
    question: ({ name }) => `Delete the skill “${name}”? Agents lose it.`,
    run: ({ id }) => api.skills.delete({ skill_id: id }),
  },
}

export const View = viewOf(skills)
