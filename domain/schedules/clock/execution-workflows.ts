/** An execution to start. Ids are plain UUIDs; the others only label the execution's workflow. */
export type StartedExecution = {
  executionId: string
  scheduleId: string
  organizationId: string
  sessionId: string | null
  targetName: string
  scheduledAt: Date
}

/** Operations on the workflow of an execution, whose id is the execution's. All reject when Temporal is away. */
export type ExecutionControl = {
  /**
   * Starts it unless it is running, a few per owner at a time. Resolves with false if it has run before: it runs once.
   */
  startExecution(execution: StartedExecution, owner: string): Promise<boolean>
  /** Makes it read the record again. Also resolves if it is missing or closed. */
  notifyExecution(executionId: string): Promise<void>
  /** Resolves with false only if Temporal reports that it is not running. */
  isExecutionRunning(executionId: string): Promise<boolean>
}
