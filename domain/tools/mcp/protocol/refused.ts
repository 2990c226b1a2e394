import { ToolError } from '../../capabilities/capability.ts'
import type { Challenge } from './status-error.ts'

/** Failure of a call that the server has not run for want of other credentials. */
export class McpRefused extends ToolError {
  override name = 'McpRefused'
  readonly challenge: Challenge
  constructor(message: string, challenge: Challenge) {
    super(message)
    this.challenge = challenge
  }
}
