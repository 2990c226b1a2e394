import type { Capability, Tool } from '../capability.ts'

const todo = {
  type: 'object',
  properties: {
    content: { type: 'string', minLength: 1, maxLength: 1000, description: 'What is to be done.' },
    status: { type: 'string', enum: ['pending', 'in_progress', 'completed'] },
  },
  required: ['content', 'status'],
  additionalProperties: false,
}

const writeTodos: Tool = {
  name: 'write_todos',
  displayName: 'To-do list',
  description:
    'Replaces the to-do list. Nothing is kept between calls: pass the whole list each time, with everything that is done and still to do.',
  parameters: {
    type: 'object',
    properties: { todos: { type: 'array', items: todo, maxItems: 200 } },
    required: ['todos'],
    additionalProperties: false,
  },
  timeoutMs: 5000,
  mayRunAgain: true,
  run: async ({ todos }) => ({ value: { todos } }),
}

export const statelessTodoList: Capability = {
  id: 'stateless_todo_list',
  name: 'To-do list',
  description: 'Lets the agent keep a list of what it has to do, in the conversation itself.',
  status: 'available',
  category: 'productivity',
  icon: 'list-checks',
  dependencies: [],
  features: [],
  systemPrompt: `For work of three or more steps, keep a to-do list with write_todos. Write the list before you begin, have one item
in_progress at a time, and mark each item completed as soon as it is. Each call replaces the whole list. Leave it out
for what takes one or two steps.`,
  tools: [writeTodos],
}
