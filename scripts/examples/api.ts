const LIMIT_MS = 10_000

/** Error with the service's own sentence. */
export class Refused extends Error {
  override name = 'Refused'
}

export type Api = {
  /** Sends a request and returns the JSON of its answer. Throws `Refused` for any answer but a success. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Returns all items of a list. */
  list<T>(path: string): Promise<T[]>
}

export function connect(url: string, token: string | undefined): Api {
  const headers = {
    'Content-Type': 'application/json',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
  }
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(url + path, {
      method,
      headers,
      signal: AbortSignal.timeout(LIMIT_MS),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const json: unknown = await answer.json()
    if (!answer.ok) throw new Refused((json as { error: string }).error)
    return json as T
  }
  const list = async <T>(path: string): Promise<T[]> => {
    const items: T[] = []
    for (;;) {
      const page = await call<{ data: T[]; total?: number }>('GET', `${path}?limit=100&offset=${items.length}`)
      items.push(...page.data)
      // Lists without a total have no pages.
      if (page.data.length === 0 || items.length >= (page.total ?? 0)) return items
    }
  }
  return { call, list }
}
