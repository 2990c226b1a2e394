import { serveJobs } from '../../../lib/threads/worker.ts'
import { readYaml, type YamlAnswer } from './read-yaml.ts'

/** Program of a thread: reads untrusted YAML and answers with its value or its problem. */
serveJobs<string, YamlAnswer>((text) => [readYaml(text)])
