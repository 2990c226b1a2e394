import { type McpClient, McpFailure } from './client.ts'

export const createMcpClient = (_options: { allowPrivateNetwork: boolean }): McpClient => ({
  discover: async () => {
    throw new McpFailure('not built yet')
  },
  call: async () => {
    throw new McpFailure('not built yet')
  },
  close: async () => {},
})
