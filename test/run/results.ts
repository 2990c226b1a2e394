import { readFile } from 'node:fs/promises'

export type Counts = {
  passed: number
  failed: number
  skipped: number
}

/** A test file with its total time, and the time that is part of none of its tests: loading, starting, stopping. */
export interface FileTime {
  file: string
  totalMs: number
  fixedMs: number
}

export type Report = object | undefined

export async function readReport(file: string): Promise<Report> {
  const report: unknown = JSON.parse(await readFile(file, 'utf8').catch(() => 'null'))
  return typeof report === 'object' && report !== null ? report : undefined
}

const read = (from: unknown, name: string): unknown =>
  typeof from === 'object' && from !== null ? Reflect.get(from, name) : undefined

function readNumber(from: unknown, name: string): number {
  const value = read(from, name)
  return typeof value === 'number' ? value : 0
}

function readList(from: unknown, name: string): unknown[] {
  const value = read(from, name)
  return Array.isArray(value) ? value : []
}

/**
 * Reads the counts from jest's JSON report. A suite that could not be run counts as a failure, and so does an
 * unexplained exit code.
 */
export function readCounts(report: Report, exitCode: number): Counts {
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0 }
  const failed = readNumber(report, 'numFailedTests') + readNumber(report, 'numRuntimeErrorTestSuites')
  return {
    passed: readNumber(report, 'numPassedTests'),
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: readNumber(report, 'numPendingTests') + readNumber(report, 'numTodoTests'),
  }
}

const SHOWN_FAILURES = 20
/** Jest's line before the error of a file that could not be run. */
const HEADING = /^\s*●.*/

/** Formats the name of each failed test with the first line of its error, and of each file that could not be run. */
export function formatFailures(report: Report, root: string): string {
  const line = (file: unknown, name: string, message: unknown) =>
    `failed: ${String(file).replace(root, '')} ${name}: ${String(message).trim().split('\n', 1)[0]}`
  const failures = readList(report, 'testResults').flatMap((file) => {
    const failed = readList(file, 'assertionResults').filter((test) => read(test, 'status') === 'failed')
    if (failed.length === 0 && read(file, 'status') === 'failed')
      return [line(read(file, 'name'), '', String(read(file, 'message')).replace(HEADING, ''))]
    return failed.map((test) =>
      line(read(file, 'name'), String(read(test, 'fullName')), readList(test, 'failureMessages')[0]),
    )
  })
  return failures.slice(0, SHOWN_FAILURES).join('\n')
}

/** Returns the number of assertions that the tests have made. */
export const readAssertions = (report: Report): number =>
  readList(report, 'testResults')
    .flatMap((result) => readList(result, 'assertionResults'))
    .reduce((sum: number, test) => sum + readNumber(test, 'numPassingAsserts'), 0)

/** Reads the times of the test files, slowest first. */
export function readFileTimes(report: Report): FileTime[] {
  const times = readList(report, 'testResults').map((result) => {
    const totalMs = readNumber(result, 'endTime') - readNumber(result, 'startTime')
    const tests = readList(result, 'assertionResults')
    const testsMs = tests.reduce((sum: number, test) => sum + readNumber(test, 'duration'), 0)
    return { file: String(read(result, 'name')), totalMs, fixedMs: Math.max(0, totalMs - testsMs) }
  })
  return times.sort((left, right) => right.totalMs - left.totalMs)
}

const SLOWEST = 15

/**
 * Formats a line for each of the slowest files and one for all files together. Returns '' when there are fewer than
 * five files.
 */
export function formatSlowest(times: FileTime[], root: string): string {
  if (times.length < 5) return ''
  const line = (name: string, { totalMs, fixedMs }: Omit<FileTime, 'file'>) =>
    `${inSeconds(totalMs)}  ${inSeconds(fixedMs)}  ${name}`
  const sum = (field: 'totalMs' | 'fixedMs') => times.reduce((total, time) => total + time[field], 0)
  return [
    'seconds in all and outside the tests, of the slowest files:',
    ...times.slice(0, SLOWEST).map((time) => line(time.file.replace(root, ''), time)),
    line(`all ${times.length} files`, { totalMs: sum('totalMs'), fixedMs: sum('fixedMs') }),
  ].join('\n')
}

const inSeconds = (ms: number): string => (ms / 1000).toFixed(1).padStart(7)

export function formatCounts({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
