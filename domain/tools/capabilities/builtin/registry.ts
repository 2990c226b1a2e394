import type { Capability } from '../capability.ts'
import { agentInstructions } from './agent-instructions.ts'
import { askUserCapability } from './ask-user.ts'
import { research } from './coming-soon.ts'
import { currentTime } from './current-time.ts'
import { noop } from './noop.ts'
import { sampleData } from './sample-data.ts'
import { sessionFileSystem } from './session-file-system/index.ts'
import { sessionSchedule } from './session-schedule.ts'
import { sessionSqlDatabase } from './session-sql-database/index.ts'
import { sessionStorage } from './session-storage/index.ts'
import { skills } from './skills.ts'
import { statelessTodoList } from './stateless-todo-list.ts'
import { testMath } from './test-math.ts'
import { testWeather } from './test-weather.ts'
import { virtualBash } from './virtual-bash.ts'
import { webFetch } from './web-fetch.ts'

/** The service's own capabilities, in the order of lists. */
export const builtinCapabilities: Capability[] = [
  agentInstructions,
  askUserCapability,
  currentTime,
  sessionFileSystem,
  sessionStorage,
  sessionSqlDatabase,
  sessionSchedule,
  statelessTodoList,
  webFetch,
  virtualBash,
  skills,
  testMath,
  testWeather,
  sampleData,
  noop,
  research,
]
