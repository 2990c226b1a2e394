import { toLaunch } from '../../../domain/schedules/clock/launch.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000)
const never = { catchUpMissed: false, maxCatchUp: null }
const upTo = (maxCatchUp: number | null) => ({ catchUpMissed: true, maxCatchUp })
/** Every ten seconds for a day, the latest five seconds ago. */
const A_DAY = Array.from({ length: 8640 }, (_, index) => ago(5 + 10 * index)).reverse()

describe('of the runs that are due', () => {
  it.each([
    ['none, when none is due', upTo(3), [], []],
    ['the only one, on time', never, [ago(0)], [ago(0)]],
    ['the only one, up to five minutes late', never, [ago(300)], [ago(300)]],
    ['none that was missed, when none is made up for', never, [ago(301)], []],
    ['the latest, when none is made up for', never, [ago(30), ago(20), ago(10)], [ago(10)]],
    ['a missed one', upTo(null), [ago(86_400)], [ago(86_400)]],
    ['the latest, as many as are made up for', upTo(2), [ago(900), ago(800), ago(700)], [ago(800), ago(700)]],
    ['the one on time among the ones made up for', upTo(2), [ago(900), ago(800), ago(1)], [ago(800), ago(1)]],
    ['the one on time, when none may be made up for', upTo(0), [ago(900), ago(1)], [ago(1)]],
    ['none, when none may be made up for', upTo(0), [ago(900)], []],
    ['three of a day of them', upTo(3), A_DAY, [ago(25), ago(15), ago(5)]],
    ['a hundred of a day of them, without a number', upTo(null), A_DAY, A_DAY.slice(-100)],
    ['a thousand of a day of them at most', upTo(2 ** 31 - 1), A_DAY, A_DAY.slice(-1000)],
  ])('launches %s', (_title, schedule, due, launched) => {
    expect(toLaunch(schedule, due, NOW)).toEqual(launched)
  })
})
