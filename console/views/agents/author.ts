import { readPages, useLoad } from '../../load.ts'
import { api, organization } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'

/** Members whose names are looked up. */
const MAX_MEMBERS = 500

/** Finds the names of members. The answer is kept for the organization. */
let members: { of: string; names: Promise<Map<string, string>> } | undefined
function namesOfMembers(): Promise<Map<string, string>> {
  const org = organization.value
  if (members?.of !== org) {
    const read = readPages((query) => api.organizations.listMembers({ org, ...query }), MAX_MEMBERS)
    const names = read.then((all) => new Map(all.map(({ user_id, name, email }) => [user_id, name || email])))
    names.catch(() => {
      members = undefined
    })
    members = { of: org, names }
  }
  return members.names
}

type Props = { userId: string | null | undefined; apiKeyId: string | null | undefined }

/** Who made a version. */
export function Author({ userId, apiKeyId }: Props): VNode {
  const { value: names } = useLoad(namesOfMembers, [organization.value])
  const name = userId ? (names?.get(userId) ?? 'a former member') : 'the service'
  return html`<span dir="auto">${names === undefined && userId ? '…' : name}${apiKeyId && ' (API key)'}</span>`
}
