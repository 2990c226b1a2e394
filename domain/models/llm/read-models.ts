import { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import type { CatalogueModel } from './catalogue.ts'
import { chooseModel, findModel, type Stored, storedSql } from './choose.ts'

/** Maximum number of models with the same name that are distinguished. */
const MAX_NAMED = 10

const NOTHING: Stored = { defaultModelId: null, models: null, providers: null }

/** Reads a model of the organization, if it exists. */
export async function readModel(
  deps: Deps,
  organizationId: string,
  modelId: string,
): Promise<CatalogueModel | undefined> {
  return (await readModels(deps, organizationId, [modelId]))[0]
}

/** Reads models, without ids that the organization does not have. */
export async function readModels(deps: Deps, organizationId: string, ids: string[]): Promise<CatalogueModel[]> {
  const stored = await readStored(deps, organizationId, ids)
  return ids.flatMap((id) => findModel(deps.models.predefined, stored, id) ?? [])
}

/** Reads the models of the organization that have a name, without stale ones. */
export async function readModelsNamed(deps: Deps, organizationId: string, name: string): Promise<CatalogueModel[]> {
  const { predefined } = deps.models
  const known = predefined.flatMap(({ models }) => models.filter((model) => model.name === name))
  const rows = await deps.db.llmModel.findMany({
    where: { organizationId, name, source: { not: 'predefined' }, isStale: false },
    select: { id: true },
    take: MAX_NAMED,
  })
  const ids = [...known, ...rows].map(({ id }) => id)
  if (ids.length === 0) return []
  const stored = await readStored(deps, organizationId, ids)
  return ids.flatMap((id) => findModel(predefined, stored, id) ?? [])
}

/** Reads the id of the default model. Undefined if every candidate is disabled. */
export async function readDefaultModelId(deps: Deps, organizationId: string): Promise<string | undefined> {
  return chooseModel(deps.models.predefined, await readStored(deps, organizationId, []))?.id
}

async function readStored(deps: Deps, organizationId: string, ids: string[]): Promise<Stored> {
  const wanted = ids.map((id) => Prisma.sql`${id}::uuid`)
  const rows = await deps.db.$queryRaw<{ stored: Stored }[]>`
    SELECT ${storedSql(deps.models.predefined, wanted)} AS stored FROM organizations o WHERE o.id = ${organizationId}::uuid`
  return rows[0]?.stored ?? NOTHING
}
