import { plain } from '../../../console/parts/plain.ts'

it.each<[string, string, string]>([
  ['a text as it is, with emoji and Hebrew', 'a\tb\n👩‍👧 שלום', 'a\tb\n👩‍👧 שלום'],
  ['colours of a terminal away', '\u001b[1;31mred\u001b[0m', 'red'],
  ['a title of a terminal away', '\u001b]0;owned\u0007ok\u001b]8;;http://x\u001b\\link', 'oklink'],
  ['moves of a cursor away', '\u001b[2Jsafe\u001b[?25l', 'safe'],
  ['marks of direction into something that is seen', 'a\u202etxt.exe', 'a⟨U+202E⟩txt.exe'],
  ['isolates too', '\u2066x\u2069', '⟨U+2066⟩x⟨U+2069⟩'],
  ['a text for models only into something that is seen', 'a\u{e0041}\u{e0042}b', 'a⟨2 unseen⟩b'],
  ['bytes in selectors too', 'a\ufe0f\u{e0101}\u{e0102}', 'a\ufe0f⟨2 unseen⟩'],
  [
    'no flag and no variant away',
    '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}❤️葛\u{e0100}',
    '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}❤️葛\u{e0100}',
  ],
  ['control characters into signs', 'a\u0000b\u0008', 'a\ufffdb\ufffd'],
  ['the beginning of an unfinished code away', 'a\u001b[31', 'a31'],
  ['an escape that begins nothing into a sign', 'a\u001b1', 'a\ufffd1'],
])('turns %s', (_, text, expected) => {
  expect(plain(text)).toBe(expected)
})

it.each(['\u001b[', '\u001b]x', '\u001b]\u001b', '\u202e', '\u{e0041}', '\u{1f3f4}\u{e0041}'])(
  'comes to an end with a million of %j',
  (piece) => {
    expect(plain(piece.repeat(1_000_000))).not.toContain('\u001b')
  },
)
