import pg from 'pg'

/** Client whose connection has the time zone UTC from its first message on, which a pooler understands as well. */
export class UtcClient extends pg.Client {
  /** Overrides the driver's list of parameters, which has no place for this one. */
  getStartupConf(): Record<string, string> {
    const driver = Reflect.get(pg.Client.prototype, 'getStartupConf') as () => Record<string, string>
    return { ...driver.call(this), TimeZone: 'UTC' }
  }
}

/**
 * Client for a pooler in transaction mode, where each transaction may run on another connection of the server: no
 * statement has a name.
 */
export class UnnamedClient extends UtcClient {
  // The driver's overloads cannot be written again; all pass on the same arguments.
  override query = ((query: unknown, ...rest: unknown[]) => {
    const unnamed = isNamed(query) ? { ...query, name: undefined } : query
    return Reflect.apply(pg.Client.prototype.query, this, [unnamed, ...rest])
  }) as pg.Client['query']
}

const isNamed = (query: unknown): query is { name: string } =>
  typeof query === 'object' && query !== null && Object.getPrototypeOf(query) === Object.prototype && 'name' in query
