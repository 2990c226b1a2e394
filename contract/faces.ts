/** Names of the faces: protocols of other services' clients that the API speaks beside its own. */
export const faceNames = ['ai-sdk', 'openai', 'mcp', 'embed'] as const
export type FaceName = (typeof faceNames)[number]
