import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { whyNoPython } from '../support/python.ts'
import { callsOf } from '../support/turns.ts'
import { newAccount } from './ai/stage.ts'
import { python } from './install.ts'
import { openStage } from './openai/stage.ts'

const PROGRAM = fileURLToPath(new URL('openai/drive_openai.py', import.meta.url))
const FAILURE = { error: { status: 400, message: 'the prompt is too long' } }

const problem = whyNoPython()
// In CI it fails instead, because nobody checks what was skipped there.
const test = problem !== undefined && !process.env.CI ? it.skip : it

test(`the Python package converses, runs its tools, and is told of failures once (${problem ?? 'by python3'})`, async () => {
  const account = await newAccount()
  const open = (steps: object[]) => openStage(account, steps)
  const stages = {
    conversation: await open([{ thinking: 'Hm.', text: 'Good morning 🦊' }, { text: 'Good night.' }]),
    tools: await open([
      { tool_calls: [...callsOf('look_around'), ...callsOf('look_around')].map(withoutId) },
      { text: 'Two rooms.' },
    ]),
    failure: await open([FAILURE, FAILURE]),
    lost: await open([{ text: 'Said once.' }]),
  }
  stages.lost.spoil({ after: -1, how: 'cut' }, { status: 503 })
  const places = Object.entries(stages).map(([name, { baseURL, agentId }]) => [
    name,
    { base_url: baseURL, model: agentId },
  ])
  const given = JSON.stringify({ key: account.key, stages: Object.fromEntries(places) })
  const { stdout } = await promisify(execFile)(python, [PROGRAM, given])
  expect(
    Object.assign(
      {},
      ...stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ),
  ).toEqual({
    conversation: {
      first: { text: 'Good morning 🦊', thinking: 'Hm.', has_usage: true },
      second: 'Good night.',
      is_listed: true,
    },
    tools: { asked: ['look_around', 'look_around'], reason: 'tool_calls', answer: 'Two rooms.' },
    failure: [
      ['BadRequestError', expect.stringMatching(/prompt is too long/)],
      ['APIError', expect.stringMatching(/prompt is too long/)],
      ['NotFoundError', expect.stringMatching(/nope/)],
      ['NotFoundError', expect.stringMatching(/nope/)],
    ],
    lost: 'Said once.',
  })
  expect([stages.failure.posts(), stages.lost.posts()]).toEqual([4, 3])
  await stages.conversation.expectStored(['Hello', 'Good morning 🦊'], ['Bye', 'Good night.'])
  await stages.lost.expectStored(['Say it', 'Said once.'])
  await Promise.all(Object.values(stages).map((stage) => stage.close()))
})

const withoutId = ({ id: _, ...call }: { id: string }) => call
