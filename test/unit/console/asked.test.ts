import { questionIn } from '../../../console/views/session/asked.ts'

const same = (...values: string[]) => values.map((value) => ({ value, label: value }))

it.each<[string, Record<string, unknown>, object]>([
  [
    'a question with options',
    { question: 'Which?', options: ['a', 'b', 'a'], room: 'Hall' },
    { text: 'Which?', options: same('a', 'b'), others: { room: 'Hall' } },
  ],
  [
    'a title with what is said about it',
    { description: 'Matt.', title: 'Order paint', priority: 1 },
    { text: 'Order paint', about: 'Matt.', others: { priority: 1 } },
  ],
  ['a description alone', { description: 'Matt.' }, { text: 'Matt.', about: undefined, others: {} }],
  [
    'choices with labels',
    { message: 'Which?', choices: [{ value: 'r', label: 'Red' }, { label: 'Blue' }] },
    {
      options: [
        { value: 'r', label: 'Red' },
        { value: 'Blue', label: 'Blue' },
      ],
      others: {},
    },
  ],
  [
    'no options that nobody could choose from',
    { question: 'Which?', options: ['a', null], choices: 'x' },
    { options: [], others: { options: ['a', null], choices: 'x' } },
  ],
  [
    'no question that is too long for a heading',
    { question: 'x'.repeat(4001) },
    { text: undefined, about: undefined, others: { question: 'x'.repeat(4001) } },
  ],
  [
    'nothing in other arguments',
    { id: 7, query: 'x' },
    { text: undefined, options: [], others: { id: 7, query: 'x' } },
  ],
])('finds %s', (_, given, expected) => {
  expect(questionIn(given)).toMatchObject(expected)
})
