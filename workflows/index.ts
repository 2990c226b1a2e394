export { retention } from './retention.ts'
export { turn } from './turn.ts'
