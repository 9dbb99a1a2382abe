/** Many signals at once to an idle session. */
import { expect, test } from 'vitest';
import { textsOf } from '../../src/contract/messages.ts';
import { SIGNAL } from '../../src/contract/names.ts';
import { defineAgent, type SessionReading, TemporalSaver } from '../../src/index.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';
import { allPages, expectSound } from './support/sound.ts';

const SENDERS = 6;
const EACH = 100;

test('a flood of signals to an idle session: each is taken once and in order, and queries are answered meanwhile', async () => {
  const stage = await openStage(() => ({ text: 'Noted.' }));
  const agent = defineAgent({ name: 'listener', model: stage.provider('m'), instructions: 'Listen.' });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('listener', { id: stage.id(), message: 'begin' });
  await untilPhase(session, 'idle');

  const handle = stage.client.workflow.getHandle(session.id);
  let open = true;
  const flood = Promise.all(
    Array.from({ length: SENDERS }, async (_, sender) => {
      for (let no = 0; no < EACH; no += 1) {
        const message = { id: `${sender}-${no}`, text: `${sender} ${no}` };
        // Each message twice, as by a client that got no answer.
        await handle.signal(SIGNAL.send, message);
        await handle.signal(SIGNAL.send, message);
      }
    }),
  ).finally(() => {
    open = false;
  });
  const readings: SessionReading[] = [];
  while (open) readings.push(await session.read());
  await flood;
  const during = readings.filter(
    ({ source, view }) => source === 'worker' && view.messages + view.queued > 2,
  );
  expect(during.length).toBeGreaterThan(0);

  await until(session, ({ phase, queued }) => phase === 'idle' && queued === 0);
  const said = (await allPages((page) => session.transcript(page)))
    .filter(({ role }) => role === 'user')
    .flatMap(({ blocks }) => blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])));
  expect(said).toHaveLength(1 + SENDERS * EACH);
  for (let sender = 0; sender < SENDERS; sender += 1) {
    const own = said.filter((text) => text.startsWith(`${sender} `));
    expect(own).toEqual(Array.from({ length: EACH }, (_, no) => `${sender} ${no}`));
  }
  await expectSound(stage, session);
});

test('2,000 messages to a session that goes on in new runs meanwhile: each is taken once', async () => {
  const stage = await openStage(() => ({ text: 'Noted.' }));
  const agent = defineAgent({
    name: 'listener',
    model: stage.provider('m'),
    instructions: 'Listen.',
    runTurns: 2,
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('listener', { id: stage.id(), message: 'begin' });
  await untilPhase(session, 'idle');
  const handle = stage.client.workflow.getHandle(session.id);
  const numbers = Array.from({ length: 2_000 }, (_, no) => no);
  const left = numbers.values();
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      for (const no of left) await handle.signal(SIGNAL.send, { id: `m-${no}`, text: String(no) });
    }),
  );
  const said = async (): Promise<number[]> => {
    const messages = await allPages((page) => session.transcript(page));
    const texts = messages.flatMap(({ role, blocks }) => (role === 'user' ? textsOf({ blocks }) : []));
    return texts.slice(1).map(Number);
  };
  // The session may rest before its worker has seen the last ones.
  await expect.poll(async () => (await said()).length, { timeout: 60_000 }).toBe(numbers.length);
  expect((await said()).toSorted((a, b) => a - b)).toEqual(numbers);
  await untilPhase(session, 'idle');
  expect((await new TemporalSaver(stage.client).get(session.id))?.state['past']).toBeDefined();
});
