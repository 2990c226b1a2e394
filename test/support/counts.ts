/**
 * Sizes of expensive tests, in `npm test` and in `npm run test:soak`. Only sizes at which a defect still shows at the
 * smaller value belong here. The memory held for slow clients is not one of them.
 */
const COUNTS = {
  /** Kills while webhooks are told of turns. */
  webhookKills: [4, 50],
  /** Kills of processes that stream to clients of all protocols. */
  doubledTextKills: [3, 200],
  interleavings: [200, 1000],
  interleavingsAtOnce: [50, 100],
  /** Rounds of outages, each with one of every kind. An interleaving appends about three times. */
  outageRounds: [2, 10],
  abandonedStreams: [500, 10_000],
  abandonedToWarmUp: [300, 1000],
  stormSessions: [25, 100],
  /** Sessions that get several messages at once. */
  sessionsAtOnce: [8, 15],
  /** Runs of each schedule during which the service is disturbed. */
  disturbedRuns: [3, 60],
  turnIterations: [25, 100],
  largeItems: [10, 16],
  cancelRaces: [12, 30],
  clientToolRaces: [6, 12],
  sessionListRounds: [8, 25],
  /** Events of a long history. Its allowance of memory over a short history grows with this number. */
  longHistory: [40_000, 100_000],
  /** For each seed. A soak run has three, so it draws more than 100,000 agents. */
  drawnAgents: [150, 34_000],
  brokenDocuments: [100, 600],
  drawnConversations: [300, 3000],
  databaseScripts: [40, 1000],
  /** Mutated inputs of each cheap parser. A soak run is limited by time. */
  fuzzedInputs: [300, Number.POSITIVE_INFINITY],
  /** Sessions of each kind that run while another release takes over. */
  upgradedSessions: [4, 25],
} satisfies Record<string, [test: number, soak: number]>

export const isSoak = process.env.SOAK === '1'

export const countOf = (name: keyof typeof COUNTS): number => COUNTS[name][isSoak ? 1 : 0]
