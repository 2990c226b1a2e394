import { describeSwap } from './ai/swap.ts'

describeSwap('ai6')
