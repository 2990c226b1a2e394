import { withoutHidden, withoutSmuggled } from '../../../lib/hidden-text.ts'

const FLAG = '🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}'

it.each<[what: string, text: string, smuggled: string, hidden: string]>([
  ['tags', 'a\u{e0041}\u{e0042}b', 'ab', 'ab'],
  ['tags behind a flag', `${FLAG}\u{e0041}`, FLAG, FLAG],
  ['selectors in a row', 'a\ufe0f\u{e0101}\ufe0e', 'a\ufe0f', 'a\ufe0f'],
  ['marks', '\ufeffa\u200bb\u202ec\u2060', '\ufeffa\u200bb\u202ec\u2060', 'abc'],
  ['no joiners', '👩‍👧 می‌خواهم', '👩‍👧 می‌خواهم', '👩‍👧 می‌خواهم'],
  ['no variant', '葛\u{e0100}飾❤️', '葛\u{e0100}飾❤️', '葛\u{e0100}飾❤️'],
])('removes %s', (_, text, smuggled, hidden) => {
  expect([withoutSmuggled(text), withoutHidden(text)]).toEqual([smuggled, hidden])
})
