import assert from 'node:assert/strict'
import fc from 'fast-check'
import { parse as parseByLibrary } from 'yaml'
import { RequestError } from '../../../../api/http/errors.ts'
import { checkText } from '../../../../api/http/text.ts'
import { parseAgentDocument } from '../../../../domain/agents/document/parse.ts'
import { DomainError } from '../../../../domain/kit/errors.ts'
import { splitFrontMatter } from '../../../../domain/kit/yaml/front-matter.ts'
import { parseYaml } from '../../../../domain/kit/yaml/parse.ts'
import type { DocumentThreads } from '../../../../domain/kit/yaml/threads.ts'
import { readSkillMd, requireValid } from '../../../../domain/tools/skills/skill-md.ts'
import { skillMd } from '../../../support/zip.ts'
import { type Outcome, type Parser, refusal } from '../parser.ts'

/** Parses in this thread, where coverage is counted and a hang is found. */
const threads: DocumentThreads = {
  run: async (text) => ({ answers: [parseYaml(text)], end: 'done', cpuMs: 0 }),
  close: async () => {},
}

const WORDS = [
  '---\n',
  '\n---\n',
  ': ',
  '- ',
  '? ',
  '|\n',
  '>-\n',
  '"',
  "'",
  '{',
  '}',
  '[',
  ']',
  '&a ',
  '*a',
  '!!str ',
  '#',
  '\t',
]
const MORE_WORDS = [
  '%YAML 1.2\n',
  '...\n',
  '<<: ',
  '\\u0000',
  '\\ud800',
  '\r',
  '\ufeff',
  '\u2028',
  '~',
  '.inf',
  '0x1f',
  '1e400',
  '__proto__: ',
]

/** Names of a document's fields as often as any other key. */
const key = fc.oneof(
  fc.constantFrom('name', 'description', 'metadata', 'version', 'tags', '__proto__'),
  fc.string({ maxLength: 6 }),
)
const { value: drawnValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.constantFrom(null, true, 0, -1.5, 1e21, '~', 'yes', '0x1', '1_000', '<<'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 3 }),
  ),
}))

/** Compares an answer with the library's own one-call parser. It lacks this service's refusals, but not its values. */
function compare(yaml: string): Outcome {
  const answer = parseYaml(yaml)
  if ('problem' in answer) {
    assert(answer.problem.length <= 200 && answer.problem.isWellFormed())
    assert(answer.line >= 1 && answer.line <= yaml.split('\n').length, `line ${answer.line}`)
    return 'refused'
  }
  assert.deepEqual(
    answer.value,
    parseByLibrary(yaml, { uniqueKeys: false, stringKeys: true, logLevel: 'silent' }) ?? null,
  )
  return 'accepted'
}

const yaml: Parser = {
  name: 'yaml',
  seeds: () =>
    [
      'name: a\ndescription: >-\n  b\n  c\nmetadata: {version: "1.0", tags: [a, b]}\n',
      'a: |\n  x\n\n  y\n- b',
      '{"a": [1, "\\u00e9"]}',
    ].map((text) => Buffer.from(text)),
  words: [...WORDS, ...MORE_WORDS],
  drawn: drawnValue.map((value) => JSON.stringify(value)),
  check: (input) => compare(input.toString()),
}

const frontMatter: Parser = {
  name: 'front-matter',
  seeds: () => [
    Buffer.from(skillMd('a', 'Do it.', 'license: MIT\nallowed-tools: [a, b]\nmetadata:\n  version: "1.0"\n')),
    Buffer.from(`\ufeff${skillMd('b').replaceAll('\n', '\r\n')}`),
  ],
  words: [...WORDS, ...MORE_WORDS],
  drawn: fc.tuple(key, drawnValue).map(([name, value]) => skillMd('a', 'x', `${name}: ${JSON.stringify(value)}\n`)),
  check: async (input) => {
    const text = input.toString()
    try {
      const fields = requireValid(await readSkillMd(threads, text, 'owner'))
      assert(/^[a-z0-9-]{1,64}$/.test(fields.name) && fields.description.length <= 2048)
      const split = splitFrontMatter(text.replace(/^\ufeff/, ''))
      assert(typeof split !== 'string' && compare(split.yaml) === 'accepted')
      return 'accepted'
    } catch (error) {
      return refusal(error, DomainError)
    }
  },
}

const TYPES = [undefined, 'text/markdown', 'application/json', 'application/yaml']

const agentDocument: Parser = {
  name: 'agent-document',
  seeds: () =>
    [
      '---\nname: Ada\ntags: [a]\ncapabilities: [web_fetch]\n---\nHelp.\n',
      'name: Ada\nsystem_prompt: |\n  Help.\n',
      '{"name": "Ada", "system_prompt": "Help.", "limits": {"max_iterations": 3}}',
      'Just help, please: be kind.',
    ].map((text) => Buffer.from(text)),
  words: [...WORDS, ...MORE_WORDS, 'name: ', 'system_prompt: ', '"system_prompt": '],
  drawn: fc.tuple(key, drawnValue).map(([name, value]) => `system_prompt: x\n${name}: ${JSON.stringify(value)}\n`),
  check: async (input) => {
    const type = TYPES[input.length % TYPES.length]
    try {
      const document = await parseAgentDocument({ threads, owner: 'owner' }, input.toString(), type)
      checkText(document, 'The document')
      // A fingerprint and the contract read it as JSON.
      assert.deepEqual(JSON.parse(JSON.stringify(document)), { ...document })
      return 'accepted'
    } catch (error) {
      return refusal(error, DomainError, RequestError)
    }
  },
}

export const DOCUMENTS: Parser[] = [yaml, frontMatter, agentDocument]
