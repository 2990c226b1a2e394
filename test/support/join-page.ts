import { randomBytes } from 'node:crypto'
import { runInNewContext } from 'node:vm'

type Element = { textContent: string; hidden: boolean; listeners: Record<string, (event: object) => Promise<void>> }

/** Page of an invitation, whose script runs in a browser that has no more than the script needs. */
export type JoinPage = {
  click(): Promise<void>
  submit(button: string, fields: Record<string, string>): Promise<void>
  output(): string
  isHidden(selector: string): boolean
  /** Paths that the script has put into the browser's history. */
  history: string[]
  /** Values that the script has stored for the page's next visit. */
  stored: Map<string, string>
}

/** Opens an invitation's path on the service at `url`, which serves page, script and API. */
export async function openPage(url: string, { pathname, hash }: URL): Promise<JoinPage> {
  const at = url + pathname
  const html = await (await fetch(at)).text()
  const script = await (await fetch(new URL(/src="([^"]+)"/.exec(html)?.[1] ?? '', at))).text()
  const elements = new Map<string, Element>()
  const find = (selector: string) => {
    const element = elements.get(selector) ?? { textContent: '', hidden: true, listeners: {} }
    elements.set(selector, element)
    return element
  }
  const stored = new Map<string, string>()
  const history: string[] = []
  // The script ends with its start.
  await runInNewContext(script, {
    location: { pathname, hash },
    history: { replaceState: (_state: unknown, _title: string, path: string) => void history.push(path) },
    sessionStorage: {
      getItem: (name: string) => stored.get(name) ?? null,
      setItem: (name: string, value: string) => void stored.set(name, value),
      removeItem: (name: string) => void stored.delete(name),
    },
    localStorage: { setItem: () => {} },
    document: { querySelector: (selector: string) => asNode(find(selector)), createElement: () => ({}) },
    FormData: function formData(form: { fields: Record<string, string> }) {
      return Object.entries(form.fields)
    },
    fetch: fetchWithCookies(at),
  })
  const fire = (selector: string, type: string, event: object) =>
    find(selector).listeners[type]?.({ preventDefault() {}, ...event }) ?? Promise.resolve()
  return {
    click: () => fire('#join', 'click', {}),
    submit: (value, fields) => fire('form', 'submit', { submitter: { value }, target: { fields } }),
    output: () => find('output').textContent,
    isHidden: (selector) => find(selector).hidden,
    history,
    stored,
  }
}

const asNode = (element: Element) =>
  Object.assign(element, {
    addEventListener: (type: string, listener: (event: object) => Promise<void>) => {
      element.listeners[type] = listener
    },
    replaceChildren() {},
  })

/** Returns a fetch that sends cookies and the page's origin, as a browser does. */
function fetchWithCookies(page: string) {
  const cookies = new Map<string, string>()
  const client = `10.${randomBytes(3).join('.')}`
  return async (link: string, { headers, ...init }: RequestInit = {}) => {
    const answer = await fetch(new URL(link, page), {
      ...init,
      headers: {
        ...(headers as Record<string, string>),
        Origin: new URL(page).origin,
        Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        'X-Forwarded-For': client,
      },
    })
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      cookies.set(name, value)
    }
    return answer
  }
}
