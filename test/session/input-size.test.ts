import { WorkflowUpdateFailedError } from '@temporalio/client';
import { expect, test } from 'vitest';
import { defineAgent, type Session } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** A session that has answered once and rests. */
async function rested(more: { runTurns?: false } = {}): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText.slice(0, 20)}` }));
  await stage.startWorker([
    defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Say what you heard.', ...more }),
  ]);
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'first' });
  await untilPhase(session, 'idle');
  return { stage, session };
}

/** A small message still gets its answer, and the session is what its history says. */
async function expectAlive(stage: Stage, session: Session): Promise<void> {
  await session.send('small');
  await expect.poll(async () => (await session.state()).lastText).toBe('heard small');
  await expectSound(stage, session);
}

const text = (bytes: number): string => 'x'.repeat(bytes);

test('our client refuses what is over the limit before it sends it', async () => {
  const { stage, session } = await rested();
  const before = await stage.client.workflow.getHandle(session.id).describe();
  const tooLarge = { code: 'TOO_LARGE', details: { field: 'message', limit: 380_000 } };

  expect(await rejection(session.send(text(2_500_000)))).toMatchObject(tooLarge);
  expect(await rejection(session.send({ text: text(380_000), id: 'm' }))).toMatchObject(tooLarge);
  // Bytes are counted, not characters.
  expect(await rejection(session.send('é'.repeat(190_000)))).toMatchObject(tooLarge);
  const reject = { decision: 'reject', reason: text(2_500_000) } as const;
  expect(await rejection(session.decide({ callId: 'call_1_0', argsDigest: 'd' }, reject))).toMatchObject({
    code: 'TOO_LARGE',
  });
  expect(await rejection(session.pause({ reason: text(2_500_000) }))).toMatchObject({ code: 'TOO_LARGE' });
  const start = stage.sessions.start('echo', { id: stage.id('large'), message: text(2_500_000) });
  expect(await rejection(start)).toMatchObject({ ...tooLarge, details: { limit: 1_000_000 } });

  const after = await stage.client.workflow.getHandle(session.id).describe();
  expect(after.historyLength).toBe(before.historyLength);
  await expectAlive(stage, session);
});

test('a message just under the limit is taken whole', async () => {
  const { stage, session } = await rested();
  await session.send({ text: text(379_000) });
  await expect.poll(async () => (await session.state()).messages).toBe(4);
  const { items } = await session.transcript({ before: 3, limit: 1 });
  expect(items[0]?.blocks).toEqual([{ kind: 'text', text: text(379_000) }]);
  await expectAlive(stage, session);
});

test.each([400_000, 1_200_000, 1_900_000, 2_500_000, 3_900_000])(
  'an update of %i bytes from a plain client is refused and ends nothing',
  async (bytes) => {
    const { stage, session } = await rested();
    const handle = stage.client.workflow.getHandle(session.id);
    const error = await rejection(handle.executeUpdate('sendMessage', { args: [{ text: text(bytes) }] }));
    if (error instanceof WorkflowUpdateFailedError) {
      expect(error.cause).toMatchObject({ type: 'TOO_LARGE' });
      expect(error.cause?.message).toMatch(/bytes of JSON, the limit is 380000/);
    } else {
      // The server cannot carry the refusal, which repeats the request; it drops both.
      expect(error).toMatchObject({ cause: { code: 9 } });
    }
    expect((await session.state()).status.kind).toBe('active');
    await expectAlive(stage, session);
  },
);

test('ten of the largest messages at once are all taken: one task answers them in one message', async () => {
  const { stage, session } = await rested();
  const send = (i: number): Promise<unknown> => session.send({ text: text(379_900), id: `m${i}` });
  await Promise.all(Array.from({ length: 10 }, (_, i) => send(i)));
  const view = await until(session, ({ phase, messages }) => phase === 'idle' && messages >= 13);
  expect(view.queued).toBe(0);
  await expectAlive(stage, session);
});

test('megabytes of updates at once from plain clients do not hold the session up', async () => {
  const { stage, session } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  const message = { text: text(1_900_000) };
  const send = (): Promise<unknown> => handle.executeUpdate('sendMessage', { args: [message] });
  const sent = Array.from({ length: 6 }, () => rejection(send()));
  for (const error of await Promise.all(sent)) expect(error).toBeInstanceOf(Error);
  await expectAlive(stage, session);
});

test.each([1_200_000, 1_900_000])(
  'a signal of %i bytes from a plain client is noted and changes nothing else',
  async (bytes) => {
    // With a history of a megabyte it would go on in a new run.
    const { stage, session } = await rested({ runTurns: false });
    const before = await session.snapshot();
    await stage.client.workflow.getHandle(session.id).signal('send', { text: text(bytes) });
    await expect.poll(async () => (await session.state()).notices.length).toBe(1);
    const after = await session.snapshot();
    expect(after.notices[0]).toMatchObject({ kind: 'malformed_signal' });
    expect(after.notices[0]?.message).toMatch(
      /^signal send was ignored: send is 1\d+ bytes of JSON, the limit is/,
    );
    expect({ ...after, notices: [] }).toEqual(before);
    await expectAlive(stage, session);
  },
);

test.each([2_500_000, 3_900_000])(
  'a signal of %i bytes from a plain client is refused by the server and ends nothing',
  async (bytes) => {
    const { stage, session } = await rested();
    const error = await rejection(
      stage.client.workflow.getHandle(session.id).signal('send', { text: text(bytes) }),
    );
    expect(error).toBeInstanceOf(Error);
    expect((await session.state()).status.kind).toBe('active');
    await expectAlive(stage, session);
  },
);

test('eight messages of 900 KB that waited for a worker are all taken', async () => {
  const stage = await openStage(({ messages }) => ({ text: `heard ${messages.length}` }));
  // A busy machine may take longer than the two seconds in which a worker's death is noticed.
  const options = { id: stage.id(), message: 'first', workflowTaskTimeout: '30s' } as const;
  const session = await stage.sessions.start('echo', options);
  const handle = stage.client.workflow.getHandle(session.id);
  for (let i = 0; i < 8; i++) await handle.signal('send', { text: text(900_000), id: `m${i}` });
  await stage.startWorker([
    defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Say what you heard.' }),
  ]);
  const view = await until(session, ({ phase, messages }) => phase === 'idle' && messages >= 10);
  expect(view.queued).toBe(0);
  await expectSound(stage, session);
});
