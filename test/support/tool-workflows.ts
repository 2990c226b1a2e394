import { ApplicationFailure, CancellationScope, isCancellation, sleep } from '@temporalio/workflow'

/** Workflows of an organization that run calls of tools. */
export const wait_and_echo = async (args: { ms: number }): Promise<unknown> => {
  await sleep(args.ms)
  return { ...args, waited: true }
}

export const wait_long = (): Promise<void> => sleep('1 hour')

/** Ignores its cancellation. */
export const never_end = async (): Promise<void> => {
  try {
    await sleep('1 hour')
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => sleep('1 hour'))
    throw error
  }
}

export const break_down = async ({ message }: { message: string }): Promise<void> => {
  throw ApplicationFailure.nonRetryable(message, 'BrokenDown')
}
