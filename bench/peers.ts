import { parseArgs } from 'node:util'
import { freePorts } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'
import { type Load, type Subject, siteSubject, TURNS_PER_SESSION, withCpu } from './load.ts'
import { createPeerSession, PEERS, type PeerName } from './peers/client.ts'
import { reportStreams, reportTurns } from './peers/report.ts'
import { installPeers, type Peer, startPeer } from './peers/servers.ts'
import { textOf } from './provider.ts'
import { print } from './report.ts'
import { ALONE, BURST, ROUNDS, runRounds, SIXTEEN, SIXTY_FOUR } from './rounds.ts'
import { type Ground, type Site, startSite } from './site.ts'
import { runLanes } from './statistics.ts'
import {
  type Ends,
  type Measured,
  measureStreams,
  row,
  runStreams,
  type Subject as Streamer,
  WARM_UP,
} from './streams.ts'
import type { TextSession } from './turn-client.ts'
import { SERVICE } from './turns-report.ts'

const LOADS = [ALONE, SIXTEEN, SIXTY_FOUR, BURST]
const COUNTS = [50, 200]
/** 14 s of a stream: the time before the measured window, the window, and a second more. */
const TOKENS = 280

/**
 * Puts the service and other agent servers under the same loads, and prints their ratios. Arguments: names of peers, all
 * without any; `--loads=turns` or `streams`, both without it. The peers' packages are installed at the first run.
 */
export async function benchPeers(ground: Ground, args: string[]): Promise<boolean> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { loads: { type: 'string', default: 'turns,streams' } },
  })
  const names = positionals.length === 0 ? Object.keys(PEERS) : positionals
  const packages = await installPeers()
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const onStop = [() => provider.stop()]
  try {
    const clients = await startChild('./streams-clients.ts')
    onStop.unshift(() => clients.stop())
    const site = await startSite(ground, 'together', providerPort)
    onStop.unshift(() => site.stop())
    const peers: Peer[] = []
    for (const name of names) {
      if (!(name in PEERS)) throw new Error(`There is no peer ${name}, only ${Object.keys(PEERS).join(', ')}.`)
      const peer = await startPeer(name as PeerName, ground, packages, providerPort)
      onStop.unshift(() => peer.stop())
      peers.push(peer)
    }
    const met: boolean[] = []
    if (values.loads.includes('turns')) met.push(await benchTurns(site, peers, provider))
    if (values.loads.includes('streams')) met.push(await benchStreams(site, peers, { provider, clients }))
    return met.every(Boolean)
  } finally {
    for (const stop of onStop) await stop()
  }
}

async function benchTurns(site: Site, peers: Peer[], provider: Child): Promise<boolean> {
  const subjects = [...peers.map((peer) => peerSubject(peer, provider)), siteSubject(SERVICE, site, provider)]
  const results = await runRounds(subjects.map((subject) => ({ subject, loads: LOADS })))
  return reportTurns(
    results,
    peers.map(({ name }) => name),
    LOADS,
  )
}

/** A peer under the loads of turns. A sentence is returned for each turn whose text is not the provider's. */
const peerSubject = ({ name, url, processes }: Peer, provider: Child): Subject => ({
  name,
  measure: async ({ count, inFlight, tokens, pauseMs }: Load) => {
    const perLane = Math.ceil(count / inFlight / TURNS_PER_SESSION)
    const sessions: TextSession[] = []
    while (sessions.length < inFlight * perLane) sessions.push(await createPeerSession(name, url))
    const turns = sessions.map(() => 0)
    const lost: string[] = []
    const turn = async (lane: number) => {
      const own = sessions.map((_, index) => index).filter((index) => index % inFlight === lane)
      const place = own.reduce((least, index) => ((turns[index] ?? 0) < (turns[least] ?? 0) ? index : least))
      turns[place] = (turns[place] ?? 0) + 1
      let text = ''
      const times = await sessions[place]?.run((delta) => {
        text += delta
      })
      if (text !== textOf(tokens)) lost.push(`${name}, ${sessions[place]?.id}: ${text}`)
      return times ?? { firstMs: Number.NaN, wholeMs: Number.NaN }
    }
    await provider.ask({ tokens, pauseMs })
    const measured = await withCpu(processes, count, () => runLanes(count, inFlight, turn))
    const calls = (await provider.ask<number>({ tokens, pauseMs })) / count
    return { ...measured, calls, lost }
  },
})

async function benchStreams(site: Site, peers: Peer[], ends: Ends): Promise<boolean> {
  const subjects: Streamer[] = [
    ...peers.map(({ name, url, processes }) => ({ name, peer: name, baseUrls: [url], processes })),
    { name: SERVICE, ...site },
  ]
  const results = new Map<string, Measured[]>()
  for (const subject of subjects) await runStreams(ends, subject, WARM_UP)
  for (let round = 0; round < ROUNDS; round++) {
    for (const count of COUNTS) {
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        const key = `${count} ${subject.name}`
        const measured = await measureStreams(ends, subject, { count, tokens: TOKENS, spreadMs: 0 })
        results.set(key, [...(results.get(key) ?? []), measured])
        print(row(key, [measured]))
      }
    }
  }
  return reportStreams(
    results,
    peers.map(({ name }) => name),
    COUNTS,
  )
}
