import { setImmediate as nextTick } from 'node:timers/promises'
import { watchLatePolls } from '../../../worker/late-polls.ts'

const BROKEN = 'Status { code: Unknown, message: "transport error" }'

describe('polls', () => {
  it.each([
    ['are late after six failures', 'gRPC call poll_activity_task_queue retried 6 times', BROKEN, true],
    ['are late after more', 'gRPC call poll_workflow_task_queue retried 16 times', BROKEN, true],
    ['are not when another call is', 'gRPC call get_system_info retried 6 times', BROKEN, false],
    [
      'wait when Temporal says so',
      'gRPC call poll_activity_task_queue retried 6 times',
      'Status { code: ResourceExhausted }',
      false,
    ],
    ['are not by any other line', 'Task not found when completing', undefined, false],
  ])('%s', async (_title, message, failure, isLate) => {
    const polls = watchLatePolls()
    const late = jest.fn()
    void polls.late().then(late)
    polls.read(message, failure)
    await nextTick()
    expect(late).toHaveBeenCalledTimes(isLate ? 1 : 0)
    // The next shift waits for another line.
    const later = jest.fn()
    void polls.late().then(later)
    await nextTick()
    expect(later).not.toHaveBeenCalled()
  })
})
