import { readFile } from 'node:fs/promises'

export type Counts = {
  passed: number
  failed: number
  skipped: number
}

function readNumber(report: object, name: string): number {
  const value: unknown = Reflect.get(report, name)
  return typeof value === 'number' ? value : 0
}

/** Reads jest's JSON report. A suite that could not be run is a failure, and so is an exit code that nothing explains. */
export async function readCounts(file: string, exitCode: number): Promise<Counts> {
  const report: unknown = JSON.parse(await readFile(file, 'utf8').catch(() => 'null'))
  if (typeof report !== 'object' || report === null) return { passed: 0, failed: 1, skipped: 0 }
  const failed = readNumber(report, 'numFailedTests') + readNumber(report, 'numRuntimeErrorTestSuites')
  return {
    passed: readNumber(report, 'numPassedTests'),
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: readNumber(report, 'numPendingTests') + readNumber(report, 'numTodoTests'),
  }
}

export function formatCounts({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
