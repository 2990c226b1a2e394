/** Element of a formatted text. Only these tags and attributes exist, so a text cannot make others. */
export type Element = { tag: Tag; href?: string; start?: number; children: Piece[] }
export type Piece = string | Element
export type Tag = 'a' | 'blockquote' | 'code' | 'em' | 'hr' | 'li' | 'ol' | 'p' | 'pre' | 's' | 'strong' | 'ul'
