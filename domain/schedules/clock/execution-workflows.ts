/** An execution to start. Ids are plain UUIDs; all beside the execution's only label its workflow. */
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
   * Starts it unless it runs already, a few of an owner at a time. Resolves with false when it has run and is closed: it
   * runs once.
   */
  startExecution(execution: StartedExecution, owner: string): Promise<boolean>
  /** Makes it read the record again. Also resolves when there is none, or it has ended. */
  notifyExecution(executionId: string): Promise<void>
  /** Resolves with false only when Temporal has reported that it does not run. */
  isExecutionRunning(executionId: string): Promise<boolean>
}
