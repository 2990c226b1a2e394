/** Returns a case-insensitive filter for texts that contain `text`. Escapes LIKE's wildcards, which Prisma does not. */
export const containsText = (text: string) =>
  ({ contains: text.replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' }) as const
