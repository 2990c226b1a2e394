/** What a launcher tells its user. The service itself logs; it never prints. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printError(text: string): void {
  process.stderr.write(`${text}\n`)
}
