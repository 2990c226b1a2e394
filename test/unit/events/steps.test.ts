import {
  actStep,
  attemptStep,
  callStep,
  callSteps,
  ownStep,
  parseStep,
  reasonStep,
} from '../../../domain/events/log/steps.ts'

describe('the names of steps', () => {
  it('are those in the record of earlier releases', () => {
    expect(reasonStep(1)).toBe('reason:1')
    expect(actStep(12)).toBe('act:12')
    expect(callStep(3, 'call_abc')).toBe('tool:3:call_abc')
    expect(attemptStep(3, 2)).toBe('reason:3:2')
    expect(callSteps(3)).toBe('tool:3:%')
  })

  it('are parsed as they are built, whatever the ids of tool calls', () => {
    expect(parseStep(reasonStep(7))).toEqual({ kind: 'reason', iteration: 7 })
    expect(parseStep(actStep(100))).toEqual({ kind: 'act', iteration: 100 })
    for (const callId of ['call_1', 'a:b:c', ':', 'reason:1', '%_', 'two\nlines']) {
      expect(parseStep(callStep(2, callId))).toEqual({ kind: 'tool', iteration: 2, callId })
    }
  })

  it('belong to the step that they are about', () => {
    expect(ownStep(attemptStep(3, 2))).toBe(reasonStep(3))
    for (const step of ['', reasonStep(3), actStep(2), callStep(1, 'reason:1:2')]) expect(ownStep(step)).toBe(step)
  })

  it('are distinguished from other strings', () => {
    for (const step of [
      '',
      'reason',
      'reason:',
      'reason:x',
      'reason:1:x',
      'act:-1',
      'tool:1',
      'think:1',
      'reason:1\n',
    ]) {
      expect(parseStep(step)).toBeUndefined()
    }
  })
})
