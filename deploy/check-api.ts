/** Health check of a container that serves the API: exit code 0 when it is ready to serve. */
const url = `http://127.0.0.1:${process.env.PORT ?? 9300}/health/ready`
const response = await fetch(url, { signal: AbortSignal.timeout(4000) }).catch(() => undefined)
process.exit(response?.ok === true ? 0 : 1)
