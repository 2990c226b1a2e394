/** Prints a launcher's message to its user. The service itself logs and never prints. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printError(text: string): void {
  process.stderr.write(`${text}\n`)
}
