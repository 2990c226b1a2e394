export const print = (text: string): void => void process.stdout.write(`${text}\n`)

/** Prints a goal and whether it was met. */
export function goal(isMet: boolean, text: string): boolean {
  print(`${isMet ? 'met   ' : 'missed'}  ${text}`)
  return isMet
}
