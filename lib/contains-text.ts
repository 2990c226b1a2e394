/** A filter for texts that contain this one, in either case. Prisma passes LIKE's wildcards through. */
export const containsText = (text: string) =>
  ({ contains: text.replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' }) as const
