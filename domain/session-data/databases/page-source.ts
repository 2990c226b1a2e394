import type { Deps } from '../deps.ts'
import type { DatabasePlace } from './database-store.ts'
import type { PageBatch, PageSource, State } from './sqlite-runner/sqlite-runner.ts'

/** State of a database, just read. Version 0 is a database that does not exist yet. */
type Known = Pick<State, 'version' | 'pageCount'>

/** Returns the source of a database's pages. A copy in the known state needs no further read. */
export function pageSource({ databaseStore }: Deps, place: DatabasePlace, { version, pageCount }: Known): PageSource {
  let lately: State | undefined = { version, pageCount, pages: NO_PAGES }
  return {
    id: place.databaseId,
    read: async (since) => {
      const state = lately?.version === since ? lately : databaseStore.read(place, since)
      // The next call reads again.
      lately = undefined
      return state
    },
  }
}

const NO_PAGES: AsyncIterable<PageBatch> = { [Symbol.asyncIterator]: () => noPages() }
async function* noPages(): AsyncGenerator<PageBatch> {}
