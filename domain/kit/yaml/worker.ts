import { serveJobs } from '../../../lib/threads/worker.ts'
import { parseYaml, type YamlAnswer } from './parse.ts'

// The parser makes an error for each mistake. Two thirds of the time of a document full of them went to stack traces.
Error.stackTraceLimit = 0

/** Entry point of a thread that reads untrusted YAML and answers with its value or its problem. */
serveJobs<string, YamlAnswer>((text) => [parseYaml(text)])
