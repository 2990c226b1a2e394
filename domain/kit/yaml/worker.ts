import { serveJobs } from '../../../lib/threads/worker.ts'
import { parseYaml, type YamlAnswer } from './parse.ts'

/** Program of a thread: reads untrusted YAML and answers with its value or its problem. */
serveJobs<string, YamlAnswer>((text) => [parseYaml(text)])
