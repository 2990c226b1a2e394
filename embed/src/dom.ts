type Child = Node | string | undefined | false

/** Attributes by name; functions are listeners of the event by that name. Nothing is ever parsed as HTML. */
type Attributes = Record<string, string | boolean | number | undefined | ((event: Event) => unknown)>

/** Creates an element. Styles are in the style sheet: a strict policy forbids them in attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children.filter((child) => child !== undefined && child !== false))
  return element
}

/** Button that can be named by `part`, in this element's style sheet and in the page's. */
export const button = (part: string, label: string, press: () => unknown, attributes: Attributes = {}) =>
  h('button', { type: 'button', part: `button ${part}`, click: press, ...attributes }, label)

/** Longest text that is shown. Layout of a longer one would block the page. */
const MAX_CHARACTERS = 50_000

export const cut = (text: string): string =>
  text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}… (${text.length} characters)` : text
