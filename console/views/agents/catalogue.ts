import { type Loaded, useLoad } from '../../load.ts'
import { api } from '../../service.ts'
import type { Catalogue } from './editor.ts'

/** Loads what an agent can be made of. */
export const useCatalogue = (): Loaded<Catalogue> =>
  useLoad(async () => {
    const [models, capabilities] = await Promise.all([
      api.models.list({ include_stale: true }),
      api.capabilities.list(),
    ])
    return { models: models.data, capabilities: capabilities.data }
  }, [])
