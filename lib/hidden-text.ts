/** Unicode's tags, which spell out a text that no font shows. A flag such as Scotland's needs its own. */
const TAGS = /(?<!\u{1f3f4}[\u{e0030}-\u{e007a}]{0,9})[\u{e0000}-\u{e007f}]/gu
/** Selectors of variants behind another one. They stand for bytes of a text that no font shows. */
const SELECTORS = /(?<=[\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu
/** Marks that only hide or reorder what is around them. Joiners, which emoji and some scripts need, are not among them. */
const MARKS = /[\u00ad\u180e\u200b\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/g

/** Removes text that models read and people do not see. One kind after the other, because a removal joins what is around. */
export const withoutSmuggled = (text: string): string => text.toWellFormed().replace(TAGS, '').replace(SELECTORS, '')

/** Removes all characters by which a text can read differently to models and to people. */
export const withoutHidden = (text: string): string => withoutSmuggled(text.toWellFormed().replace(MARKS, ''))
