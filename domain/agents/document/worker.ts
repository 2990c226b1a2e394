import { serveJobs } from '../../../lib/threads/worker.ts'
import { readYaml, type YamlAnswer } from './read-yaml.ts'

/** A thread's whole program: YAML that strangers wrote in, its value or what is wrong with it out. */
serveJobs<string, YamlAnswer>((text) => [readYaml(text)])
