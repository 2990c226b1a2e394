import { type Capability, type Tool, ToolError } from '../capability.ts'

const TOOL_MS = 30_000

const NONE =
  'No skill is attached. One is attached by the capability skill:<id> of the agent or the session, which its user adds.'

const listSkills: Tool = {
  name: 'list_skills',
  displayName: 'List skills',
  description: 'Lists the skills of this session with what each is for, and the directory of its files.',
  parameters: { type: 'object', properties: {}, additionalProperties: false },
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  async run(_args, { skills }) {
    const listed = await skills.list()
    return { value: { skills: listed, ...(listed.length === 0 ? { note: NONE } : {}) } }
  },
}

const activateSkill: Tool = {
  name: 'activate_skill',
  displayName: 'Load a skill',
  description:
    'Loads the instructions of a skill, and lists the files that come with it. read_file and bash read those.',
  parameters: {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 255, description: 'The name of the skill.' } },
    required: ['name'],
    additionalProperties: false,
  },
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  async run({ name }, { skills }) {
    const skill = await skills.read(String(name))
    if (skill === undefined) throw new ToolError(unknown(String(name), await skills.list()))
    const { path, body, files, hasMoreFiles } = skill
    return {
      value: { name, directory: path, instructions: body, files, ...(hasMoreFiles ? { more_files: true } : {}) },
    }
  },
}

const unknown = (name: string, known: { name: string }[]): string =>
  known.length === 0
    ? `There is no skill ${name}. ${NONE}`
    : `There is no skill ${name}. The skills are ${known.map((skill) => skill.name).join(', ')}.`

/** Tools for the session's skills. Each skill is its own capability; see domain/tools/skills. */
export const skills: Capability = {
  id: 'skills',
  name: 'Skills',
  description: 'Lets the agent find and load skills.',
  status: 'available',
  category: 'productivity',
  icon: 'graduation-cap',
  dependencies: ['session_file_system'],
  features: [],
  systemPrompt: `Skills are instructions for tasks of one kind. Before you do what a skill is for, load it with activate_skill; its files
are at /skills/<name>/, read-only.`,
  tools: [listSkills, activateSkill],
}
