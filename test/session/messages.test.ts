import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { allPages, expectSound } from './support/sound.ts';

/** A door that a test opens: what waits at it goes on then. */
function gate(): { open: () => void; opened: Promise<void> } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

async function talk(
  script: Script,
  execute: {
    read?: (signal: AbortSignal) => Promise<unknown>;
    pay?: (signal: AbortSignal) => Promise<unknown>;
  } = {},
): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(script);
  const inputSchema = z.object({});
  const tools = {
    read: defineTool({
      inputSchema,
      effect: 'read',
      execute: (_, { abortSignal }) => execute.read?.(abortSignal),
    }),
    pay: defineTool({
      inputSchema,
      idempotency: { scope: 'call' },
      settle: 0,
      execute: (_, { abortSignal }) => execute.pay?.(abortSignal),
    }),
  };
  const agent = defineAgent({
    name: 'talker',
    model: stage.provider('m'),
    instructions: 'Talk.',
    tools,
    heartbeat: '1s',
  });
  await stage.startWorker([agent]);
  return { stage, session: await stage.sessions.start('talker', { id: stage.id(), message: 'first' }) };
}

async function said(session: Session): Promise<string[]> {
  const transcript = await allPages((page) => session.transcript(page));
  return transcript
    .filter(({ role }) => role === 'user')
    .flatMap(({ blocks }) => blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])));
}

test('messages of a running turn are queued, and taken in order when it is over', async () => {
  const door = gate();
  const { stage, session } = await talk(async ({ assistantCount, messages }) => {
    if (assistantCount === 0) await door.opened;
    return { text: `saw ${messages.filter(({ role }) => role === 'user').length}` };
  });
  await stage.model.waitFor((requests) => requests.length === 0);
  await untilPhase(session, 'thinking');
  for (const text of ['second', 'third', 'fourth']) await session.send(text);
  expect(await session.state()).toMatchObject({ phase: 'thinking', queued: 3 });
  door.open();
  const done = await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
  expect(done.lastText).toBe('saw 4');
  expect(await said(session)).toEqual(['first', 'second', 'third', 'fourth']);
  await expectSound(stage, session);
});

test('fifty messages at once from many clients: none is lost, none is doubled', async () => {
  const { stage, session } = await talk(({ messages }) => ({
    text: `saw ${messages.filter(({ role }) => role === 'user').length}`,
  }));
  const texts = Array.from({ length: 50 }, (_, i) => `message ${i}`);
  const handle = stage.client.workflow.getHandle(session.id);
  await Promise.all(
    texts.map((text, i) =>
      i % 2 === 0 ? session.send({ text, id: `m-${i}` }) : handle.signal('send', { text, id: `m-${i}` }),
    ),
  );
  // Everything again, as a client does that did not hear the answer.
  await Promise.all(texts.map((text, i) => session.send({ text, id: `m-${i}` })));
  await until(session, ({ lastText, phase }) => lastText === 'saw 51' && phase === 'idle');
  const heard = await said(session);
  expect(heard).toHaveLength(51);
  expect(new Set(heard)).toEqual(new Set(['first', ...texts]));
  await expectSound(stage, session);
});

test('messages of one client keep their order, by update or by signal', async () => {
  const { stage, session } = await talk(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const handle = stage.client.workflow.getHandle(session.id);
  const texts = Array.from({ length: 20 }, (_, i) => `n${i}`);
  for (const [i, text] of texts.entries()) {
    if (i % 3 === 0) await session.send(text);
    else await handle.signal('send', text);
  }
  await until(
    session,
    ({ lastText, queued, phase }) => lastText === 'heard n19' && queued === 0 && phase === 'idle',
  );
  expect(await said(session)).toEqual(['first', ...texts]);
  await expectSound(stage, session);
});

test('one id is one message: in the queue, in the transcript, and by signal', async () => {
  const { stage, session } = await talk(() => ({ text: 'ok' }));
  await untilPhase(session, 'idle');
  await session.send({ text: 'pay', id: 'order-1' });
  await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
  await session.send({ text: 'pay', id: 'order-1' });
  expect(await rejection(session.send({ text: 'other words, same id', id: 'order-1' }))).toMatchObject({
    code: 'CONFLICT',
    details: { field: 'id', id: 'order-1' },
  });
  const loose: (...given: unknown[]) => Promise<unknown> = session.send.bind(session) as never;
  expect(await rejection(loose('pay', { id: 'order-1' }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('send({ text, id, mode })'),
  });
  await stage.client.workflow.getHandle(session.id).signal('send', { text: 'pay', id: 'order-1' });
  // An id that looks like one of ours would swallow a message of ours, or be swallowed.
  await expect(session.send({ text: 'tricky', id: 'msg_6' })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('id: the session itself uses ids of the form msg_<number>'),
  });
  await session.send({ text: 'tricky', id: 'msg_6a' });
  await until(session, ({ turn, phase }) => turn === 3 && phase === 'idle');
  await session.send('plain');
  await until(session, ({ turn, phase }) => turn === 4 && phase === 'idle');
  expect(await said(session)).toEqual(['first', 'pay', 'tricky', 'plain']);
  const ids = (await session.transcript()).items.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  await expectSound(stage, session);
});

test('an interrupting message cancels the model call, and is answered', async () => {
  const { stage, session } = await talk(({ lastUserText }) =>
    lastUserText === 'first' ? { fault: 'hang', afterChunks: 1 } : { text: 'the second' },
  );
  await stage.model.waitFor((requests) => requests.length === 1);
  await session.send({ text: 'stop that', mode: 'interrupt' });
  const { lastText, turn } = await untilPhase(session, 'idle');
  expect([lastText, turn]).toEqual(['the second', 1]);
  await stage.model.waitFor(([first]) => first?.state === 'gone');
  expect(await said(session)).toEqual(['first', 'stop that']);
  await expectSound(stage, session);
});

test('an interrupting message cancels reads in flight, and the model is told why they gave nothing', async () => {
  const aborted = gate();
  const started = gate();
  const { stage, session } = await talk(
    ({ assistantCount, toolResults }) =>
      assistantCount === 0
        ? {
            toolCalls: [
              { name: 'read', args: {} },
              { name: 'pay', args: {} },
            ],
          }
        : { text: toolResults.map(({ text }) => text).join('|') },
    {
      read: (signal) => {
        started.open();
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted.open();
            reject(signal.reason as Error);
          });
        });
      },
      pay: () => Promise.resolve('must not run'),
    },
  );
  await started.opened;
  await session.send({ text: 'leave it', mode: 'interrupt' });
  await aborted.opened;
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText).toBe('A new message of the user came first.|A new message of the user came first.');
  expect((await session.budget()).spent.toolCalls).toBe(1);
  await expectSound(stage, session);
});

test('an interrupting message lets a running mutation end, keeps its result, and issues nothing after it', async () => {
  const started = gate();
  const finish = gate();
  let paid = 0;
  const { stage, session } = await talk(
    ({ assistantCount, toolResults }) =>
      assistantCount === 0
        ? {
            toolCalls: [
              { name: 'pay', args: {} },
              { name: 'pay', args: {} },
            ],
          }
        : { text: toolResults.map(({ text }) => text).join('|') },
    {
      pay: async (signal) => {
        started.open();
        await finish.opened;
        return signal.aborted ? 'aborted' : `paid ${++paid}`;
      },
    },
  );
  await started.opened;
  await session.send({ text: 'leave it', mode: 'interrupt' });
  expect(await session.state()).toMatchObject({ phase: 'acting', queued: 1 });
  finish.open();
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText).toBe('paid 1|A new message of the user came first.');
  expect(paid).toBe(1);
  await expectSound(stage, session);
});

test('an interrupting message to a session that rests is a plain message', async () => {
  const { stage, session } = await talk(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  await untilPhase(session, 'idle');
  await session.send({ text: 'now', mode: 'interrupt' });
  await until(session, ({ lastText, phase }) => lastText === 'heard now' && phase === 'idle');
  expect((await session.snapshot()).interrupted).toBe(false);
  await expectSound(stage, session);
});
