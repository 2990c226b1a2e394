export { execution } from './execution.ts'
export { launch } from './launch.ts'
export { retention } from './retention.ts'
export { turn } from './turn.ts'
