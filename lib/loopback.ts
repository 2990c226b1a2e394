/** Whether a URL's host name is this machine, whoever resolves it. */
export const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
