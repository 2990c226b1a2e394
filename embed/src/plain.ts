/** Escape codes of terminals. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const TERMINAL = /\u001b\[[0-9;:?<=>]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-_]/g
/** Characters that change the direction of the following text, up to the end of the paragraph. */
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g
/** Characters that spell out a text for models, and that no font shows, but for the tags of a flag. */
const UNSEEN =
  /(?<!\u{1f3f4}[\u{e0030}-\u{e007a}]{0,9})[\u{e0000}-\u{e007f}]+|(?<=[\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+/gu
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g

/** Returns an untrusted text without deception: terminal codes are removed, unseen and reordering characters become visible. */
export const plain = (text: string): string =>
  text
    .replace(TERMINAL, '')
    .replace(CONTROLS, '\ufffd')
    .replace(UNSEEN, (marks) => `⟨${[...marks].length} unseen⟩`)
    .replace(DIRECTIONS, (mark) => `⟨U+${mark.codePointAt(0)?.toString(16).toUpperCase()}⟩`)
