import type { OpenSession } from './turn-client.ts'

/** Fields of the API's events that the bench reads. */
type Event = {
  type: string
  context?: { turn_id?: string }
  data: { delta?: string; accumulated?: string; message?: { content: { text?: string }[] } }
}

const READ = ['output.message.started', 'output.message.delta', 'output.message.completed', 'turn.completed']

/**
 * Compares each turn of the sessions, as it was streamed and as it is recorded, with the provider's text: all of it, in
 * order, once. Returns a sentence for each difference.
 */
export async function findLostText(baseUrl: string, sessions: OpenSession[], text: string): Promise<string[]> {
  const lost: string[] = []
  for (const session of sessions) {
    lost.push(...findLostInStream(session, text))
    const query = READ.map((type) => `types=${type}`).join('&')
    const answer = await fetch(`${baseUrl}/v1/sessions/${session.id}/events?${query}`)
    const { data } = (await answer.json()) as { data: Event[] }
    lost.push(...findLostInRecord(session, data, text))
  }
  return lost
}

function findLostInStream({ id, turns }: OpenSession, text: string): string[] {
  return turns.flatMap(({ begun, deltas }, index) => {
    const events = deltas.map((delta) => JSON.parse(delta) as Event)
    const isWhole = joined(events) === text && events.at(-1)?.data.accumulated === text
    return begun === 1 && isWhole ? [] : [`stream of ${id}, turn ${index}: begun ${begun} times, ${joined(events)}`]
  })
}

function findLostInRecord({ id, turns }: OpenSession, events: Event[], text: string): string[] {
  const byTurn = Map.groupBy(events, ({ context }) => context?.turn_id)
  const lost = [...byTurn].flatMap(([turnId, ofTurn]) => {
    const of = (type: string) => ofTurn.filter((event) => event.type === type)
    const [completed, more] = of('output.message.completed')
    const isOnce = of('output.message.started').length === 1 && of('turn.completed').length === 1 && more === undefined
    const isWhole =
      joined(of('output.message.delta')) === text &&
      completed?.data.message?.content.map((part) => part.text).join() === text
    return isOnce && isWhole ? [] : [`record of ${id}, ${turnId}: ${ofTurn.map(({ type }) => type).join(' ')}`]
  })
  return byTurn.size === turns.length ? lost : [...lost, `record of ${id}: ${byTurn.size} of ${turns.length} turns`]
}

const joined = (events: Event[]): string => events.map(({ data }) => data.delta ?? '').join('')
