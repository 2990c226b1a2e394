/** Normalizes an email address for comparison, so that spellings that differ only in case belong to one user. */
export const normalizeEmail = (email: string): string => email.trim().normalize('NFC').toLowerCase()
