/** As users are found by it: nobody is somebody else by capital letters. */
export const normalizeEmail = (email: string): string => email.trim().normalize('NFC').toLowerCase()
