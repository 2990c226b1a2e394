/**
 * npm run event-examples [-- <address>]: runs a short conversation in a service without sign-in, by default the one of
 * npm start, and writes its events into docs/events.md as the examples.
 */
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ROOT } from '../dev/development.ts'
import { print } from '../dev/terminal.ts'
import { replaceExamples } from '../test/support/event-page.ts'
import { playEveryEvent } from '../test/support/every-event.ts'

const [address = 'http://localhost:9300'] = process.argv.slice(2)
const file = path.join(ROOT, 'docs', 'events.md')
const events = await playEveryEvent(address)
await writeFile(file, replaceExamples(await readFile(file, 'utf8'), events))
print(`docs/events.md: examples of ${events.length} events`)
