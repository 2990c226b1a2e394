export { CallArguments } from './call/arguments.ts'
