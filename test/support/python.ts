import { execFileSync } from 'node:child_process'

/** Returns why there is no usable Python, or undefined. Some machines have none, and some only a python3 stub. */
export function whyNoPython(): string | undefined {
  try {
    execFileSync('python3', ['-c', 'import sys; assert sys.version_info >= (3, 9)'], { stdio: 'ignore' })
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no python3' : 'python3 is older than 3.9'
  }
}
