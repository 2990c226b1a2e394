import * as fc from 'fast-check'
import { withoutHidden, withoutSmuggled } from '../../../lib/hidden-text.ts'

const FLAG = '🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}'

it.each<[what: string, text: string, smuggled: string, hidden: string]>([
  ['tags', 'a\u{e0041}\u{e0042}b', 'ab', 'ab'],
  ['tags behind a flag', `${FLAG}\u{e0041}`, FLAG, FLAG],
  ['selectors in a row', 'a\ufe0f\u{e0101}\ufe0e', 'a\ufe0f', 'a\ufe0f'],
  ['selectors around tags', 'a\ufe00\u{e0041}\ufe01\u{e0042}\ufe02', 'a\ufe00', 'a\ufe00'],
  ['selectors around marks', 'a\ufe00\u200b\ufe01', 'a\ufe00\u200b\ufe01', 'a\ufe00'],
  ['halves of a tag', 'a\udb40\u200b\udc41', 'a\ufffd\u200b\ufffd', 'a\ufffd\ufffd'],
  ['marks', '\ufeffa\u200bb\u202ec\u2060', '\ufeffa\u200bb\u202ec\u2060', 'abc'],
  ['no joiners', '👩‍👧 می‌خواهم', '👩‍👧 می‌خواهم', '👩‍👧 می‌خواهم'],
  ['no variant', '葛\u{e0100}飾❤️', '葛\u{e0100}飾❤️', '葛\u{e0100}飾❤️'],
])('removes %s', (_, text, smuggled, hidden) => {
  expect([withoutSmuggled(text), withoutHidden(text)]).toEqual([smuggled, hidden])
})

it.each([withoutSmuggled, withoutHidden])('leaves nothing to remove: %o', (remove) => {
  const unit = fc.constantFrom('a', '\u200b', '\ufe00', '\u{e0101}', '\u{e0041}', '\u{e007f}', '🏴', '\udb40', '\udc41')
  fc.assert(fc.property(fc.string({ unit }), (text) => remove(remove(text)) === remove(text)))
})
