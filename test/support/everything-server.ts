import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePorts } from '../../dev/services/index.ts'
import { waitFor } from './http.ts'

/** Starts the reference MCP server, and waits until it answers. */
export async function startEverythingServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const [port = 0] = await freePorts(1)
  const child = spawn('node_modules/.bin/mcp-server-everything', ['streamableHttp'], {
    env: { ...process.env, PORT: `${port}` },
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  const url = `http://127.0.0.1:${port}/mcp`
  const answers = async () => {
    const answer = await fetch(url).catch(() => undefined)
    await answer?.body?.cancel()
    return answer !== undefined
  }
  const stop = async () => {
    child.kill('SIGKILL')
    await exited
  }
  await waitFor(answers, 'the MCP server').catch(async (error) => {
    await stop()
    throw error
  })
  return { url, stop }
}
