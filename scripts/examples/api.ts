const LIMIT_MS = 10_000

/** Error with the service's own sentence. */
export class Refused extends Error {
  override name = 'Refused'
}

export type Api = {
  /** Sends a request and returns the JSON of its answer. Throws `Refused` for any answer but a success. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Returns the first hundred items of a list. */
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
  return { call, list: async <T>(path: string) => (await call<{ data: T[] }>('GET', `${path}?limit=100`)).data }
}
