/** Equal calls in answer to one message of the user are one effect; in answer to another message they are another one. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session, type StreamPart, TemporalSaver } from '../../src/index.ts';
import type { Script, ScriptedTurn } from '../../src/testing/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { calls, openWorld } from '../support/world.ts';

const mail = { toolCalls: [{ name: 'mail', args: { to: 'ann' } }] };

/** A session whose `mail` notes the key of each run. */
async function mailing(
  script: Script,
  execute?: (session: Session) => Promise<void>,
): Promise<{ stage: Stage; session: Session; sent: string[] }> {
  const stage = await openStage(script);
  const sent: string[] = [];
  let session: Session | undefined;
  const tool = defineTool({
    description: 'Mails somebody',
    inputSchema: z.object({ to: z.string() }),
    execute: async ({ to }, { idempotencyKey }) => {
      sent.push(idempotencyKey);
      if (session !== undefined) await execute?.(session);
      return `sent to ${to}`;
    },
  });
  await stage.startWorker([
    defineAgent({ name: 'mailer', model: stage.provider('m'), instructions: 'Mail.', tools: { mail: tool } }),
  ]);
  session = await stage.sessions.start('mailer', { id: stage.id() });
  return { stage, session, sent };
}

/** Each message gets so many calls of `mail`, one after the other, and then an answer. */
const times =
  (n: number): Script =>
  ({ stepInTurn }) =>
    stepInTurn < n ? mail : { text: 'Done.' };

async function say(session: Session, text: string): Promise<void> {
  await session.send(text);
  await untilPhase(session, 'idle');
}

test('the second mail is sent: an equal call in answer to a later message is a new effect', async () => {
  const { stage, session, sent } = await mailing(times(1));
  await say(session, 'Mail ann.');
  await say(session, 'Mail ann again.');
  const { items } = await session.calls();
  expect(items).toMatchObject([
    { scope: 'message', message: 1, replayOf: null, result: { content: 'sent to ann' } },
    { scope: 'message', message: 2, replayOf: null, result: { content: 'sent to ann' } },
  ]);
  expect(sent).toEqual(items.map(({ idempotencyKey }) => idempotencyKey));
  expect(new Set(sent).size).toBe(2);
  await expectFoldEqualsLive(stage.client, session);
});

test('a replay is loud: to the model, in the notices and in the stream', async () => {
  const { stage, session, sent } = await mailing(times(2));
  const parts: StreamPart[] = [];
  await session.send('Mail ann.');
  for await (const part of session.stream()) parts.push(part);
  expect(sent).toHaveLength(1);
  const words =
    '[idempotent replay of call_1_0] mail was not executed: an equal call was made in answer to the same message';
  const [, told] = stage.model.requests.at(-1)?.request.toolResults ?? [];
  expect(told?.text).toContain(words);
  expect(told?.text).toContain('sent to ann');
  const notice = { kind: 'replay', message: expect.stringContaining(`call_2_0: ${words}`) };
  expect((await session.state()).notices).toMatchObject([notice]);
  expect(parts.filter(({ type }) => type === 'notice')).toMatchObject([{ notice }]);
  await expectFoldEqualsLive(stage.client, session);
});

test('a message that comes while a call runs counts from when it is taken: the calls after it are new effects', async () => {
  const { session, sent, stage } = await mailing(
    ({ assistantCount }) => (assistantCount < 2 ? mail : { text: 'Done.' }),
    async (own) => {
      if (sent.length === 1) await own.send('And one more.');
    },
  );
  await session.send('Mail ann.');
  await untilPhase(session, 'idle');
  expect((await session.calls()).items).toMatchObject([
    { message: 1, replayOf: null },
    { message: 2, replayOf: null },
  ]);
  expect(sent).toHaveLength(2);
  await expectFoldEqualsLive(stage.client, session);
});

test('messages that are taken together count as one, and so does one that interrupts', async () => {
  const { session, sent, stage } = await mailing(({ lastUserText, stepInTurn }) =>
    lastUserText === 'two' && stepInTurn < 2 ? mail : { text: 'Done.' },
  );
  await session.pause();
  await session.send('one');
  await session.send({ text: 'two', mode: 'interrupt' });
  expect((await session.state()).queued).toBe(2);
  await session.resume();
  await untilPhase(session, 'idle');
  const { items } = await session.calls();
  expect(items.map(({ message, replayOf }) => [message, replayOf])).toEqual([
    [2, null],
    [2, 'call_1_0'],
  ]);
  expect(sent).toHaveLength(1);
  await expectFoldEqualsLive(stage.client, session);
});

test('a rewind does nothing again, whatever the message is that asks for it; the message after that is new', async () => {
  const { stage, session, sent } = await mailing(({ lastUserText, stepInTurn }) =>
    stepInTurn === 0 && lastUserText.startsWith('mail') ? mail : { text: 'Done.' },
  );
  await say(session, 'hello');
  const [hello] = await new TemporalSaver(stage.client).list(session.id, { limit: 1 });
  await say(session, 'mail her');
  await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: hello?.id ?? '' },
    { by: 'ada', reason: 'again', message: 'first something else' },
  );
  await untilPhase(session, 'idle');
  await say(session, 'mail her now');
  await say(session, 'mail her once more');
  const { items } = await session.calls();
  // The number 2 was given in the run that was left: it is not given again.
  expect(items.map(({ message, replayOf }) => [message, replayOf !== null])).toEqual([
    [4, true],
    [5, false],
  ]);
  expect(items[0]?.result?.content).toContain('before the session was rewound');
  expect(sent).toEqual([items[0]?.idempotencyKey, items[1]?.idempotencyKey]);
  await expectFoldEqualsLive(stage.client, session);
});

test('a fork makes the effect of the message that it starts in under a key of its own', async () => {
  const { stage, session, sent } = await mailing(times(1));
  await say(session, 'Mail ann.');
  const [now] = await new TemporalSaver(stage.client).list(session.id, { limit: 1 });
  const fork = await stage.sessions.fork(
    { sessionId: session.id, checkpointId: now?.id ?? '' },
    { id: stage.id('fork'), by: 'ada', reason: 'what if', message: 'Mail ann.' },
  );
  await untilPhase(fork, 'idle');
  await say(session, 'Mail ann.');
  expect((await fork.calls()).items.map(({ message }) => message)).toEqual([1, 2]);
  expect((await session.calls()).items.map(({ message }) => message)).toEqual([1, 2]);
  expect(new Set(sent).size).toBe(3);
  await expectFoldEqualsLive(stage.client, fork);
});

test('a worker that is killed after the effect changes nothing: one effect for each message', async () => {
  const twice: ScriptedTurn[] = [calls('refund'), calls('refund'), { text: 'Done.' }];
  const world = await openWorld([...twice, ...twice], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after refund'] });
  const session = await world.begin();
  await first.reached('after refund');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');
  await session.send('Once more.');
  await world.until(session, ({ phase, turn }) => phase === 'idle' && turn === 6);

  const { calls: log } = await world.check(session);
  expect(log.map(({ message, replayOf }) => [message, replayOf])).toEqual([
    [1, null],
    [1, 'call_1_0'],
    [2, null],
    [2, 'call_4_0'],
  ]);
  expect((await world.control.refunds()).map(({ key }) => key)).toEqual([
    log[0]?.idempotencyKey,
    log[2]?.idempotencyKey,
  ]);
});
