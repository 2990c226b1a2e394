import { serveJobs } from '../../../lib/threads/worker.ts'
import { parseYaml, type YamlAnswer } from './parse.ts'

/** Entry point of a thread that reads untrusted YAML and answers with its value or its problem. */
serveJobs<string, YamlAnswer>((text) => [parseYaml(text)])
