/** A turn, its session and their organization. Plain UUIDs. */
export type TurnPlace = { organizationId: string; sessionId: string; turnId: string }
