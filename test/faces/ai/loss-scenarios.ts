import { createRandom } from '../../support/random.ts'
import { lastOf, loadMessages, loadPage, openChat, settled, textOf } from './page.ts'
import { type Scenario, slow } from './scenario.ts'
import type { Stage } from './stage.ts'
import type { UiMessage } from './versions.ts'

/**
 * Comes back to the turn as a page of this version can. A page that resumes in place and gets nothing was away until the
 * turn had ended, and asks for the stored messages.
 */
export async function comeBack(stage: Stage): Promise<void> {
  if (!stage.version.resumesInPlace) return stage.reload()
  const { chat } = stage
  const before = lastOf(chat)
  await chat.resumeStream()
  await settled(chat)
  if (chat.status !== 'ready' || lastOf(chat) !== before) return
  const load = (): Promise<UiMessage[]> => loadMessages(stage.place).catch(load)
  chat.messages = await load()
}

/** Sends a message, and comes back whenever the connection is lost until the page has the whole turn. */
async function sayThroughCuts(stage: Stage, text: string): Promise<void> {
  await stage.say(text)
  for (let times = 0; times < 20 && stage.chat.status === 'error'; times++) await comeBack(stage).catch(() => {})
  stage.mend()
  expect(stage.chat.status).toBe('ready')
}

/** Tool of the service between two texts, which take some seconds. */
export const TWO_STEPS = [
  {
    thinking: 'Hm. ',
    text: 'First this. ',
    tokens_per_second: 30,
    tool_calls: [{ name: 'wait', arguments: { ms: 500 } }],
  },
  { thinking: 'Well. ', text: slow(1).text, tokens_per_second: 10 },
]

export const TWO_TEXTS = `First this. ${slow(1).text}`

/** Scenarios in which pages and connections are lost. */
export const lossScenarios: Scenario[] = [
  {
    name: 'a page that is loaded anew in mid-answer, twice',
    steps: TWO_STEPS,
    play: async (stage) => {
      const left = stage.say('Take your time')
      await stage.untilEvent('output.message.started', 2)
      const [once, twice] = [loadPage(stage.place), loadPage(stage.place)]
      stage.chat = await once
      await settled(stage.chat)
      await left
      expect(textOf(lastOf(stage.chat))).toBe(TWO_TEXTS)
      expect((await twice).messages).toEqual(stage.chat.messages)
      expect((await twice).status).toBe('ready')
    },
  },
  {
    name: 'a page that goes away before its answer begins, and comes back after its end',
    steps: [slow(1, 20)],
    play: async (stage) => {
      const sending = stage.say('I am leaving')
      await stage.untilEvent('output.message.started')
      await stage.chat.stop()
      await sending
      await stage.untilEvent('turn.completed')
      await stage.reload()
      expect(textOf(lastOf(stage.chat))).toBe(slow(1).text)
    },
  },
  {
    name: 'a chat that nobody has begun',
    steps: [],
    play: async (stage) => {
      const before = stage.chat
      const fresh = openChat({ ...stage.place, chatId: `${stage.place.chatId} that nobody has begun` })
      await fresh.resumeStream()
      expect([fresh.status, fresh.error, fresh.messages]).toEqual(['ready', undefined, []])
      expect((await loadPage({ ...stage.place, chatId: 'another' })).messages).toEqual([])
      stage.chat = before
    },
  },
  {
    name: 'an answer that is lost from its first byte, and a page that is loaded anew',
    steps: [{ text: 'Said once.' }],
    play: async (stage) => {
      const { length } = await stage.turns().catch(() => [])
      stage.spoil({ after: -1, how: 'cut' })
      await stage.say('Say it')
      expect(stage.chat.status).toBe('error')
      // The page's "Retry" asks for the answer to be generated again. The message has arrived, and is not posted again.
      await stage.chat.regenerate()
      await settled(stage.chat)
      if (stage.chat.status === 'error') expect(stage.chat.error?.message).toMatch(/cannot be generated again/)
      await stage.untilEvent('turn.completed')
      await stage.reload()
      expect(textOf(lastOf(stage.chat))).toBe('Said once.')
      expect(await stage.turns()).toHaveLength(length + 1)
    },
  },
  ...[1, 2, 3].map(
    (seed): Scenario => ({
      name: `connections that are cut after random bytes, by seed ${seed}`,
      steps: TWO_STEPS,
      play: async (stage) => {
        const random = createRandom(seed)
        // History and stream take turns where the page is loaded anew, and each must survive its cuts.
        stage.spoil(
          ...Array.from({ length: 6 }, () => ({ after: 1 + Math.floor(random() * 900), how: 'cut' as const })),
        )
        await sayThroughCuts(stage, 'Talk to me')
        expect(textOf(lastOf(stage.chat))).toBe(TWO_TEXTS)
      },
    }),
  ),
]
