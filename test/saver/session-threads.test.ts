import { AsyncLocalStorage } from 'node:async_hooks';
import { Client } from '@temporalio/client';
import { describe, expect, test, vi } from 'vitest';
import { canonicalJson } from '../../src/contract/json.ts';
import { type Checkpoint, type JsonObject, TemporalSaver } from '../../src/index.ts';
import type { ScriptedTurn } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { untilPhase } from '../support/stage.ts';
import { idle, LOOK_UP, openSessionStage } from './support/session-stage.ts';

const all = (saver: TemporalSaver, id: string): Promise<Checkpoint[]> => saver.list(id, { limit: 1_000 });
const canonical = (value: unknown): string => canonicalJson(value as JsonObject);

describe('the checkpoints of a session', () => {
  test('are its completed workflow tasks, newest first, and the latest is the live state', async () => {
    const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }]);
    const session = await idle(stage);
    const latest = await stage.saver.get(session.id);
    expect(canonical(latest?.state)).toBe(canonical(await session.snapshot()));

    const newest = await all(stage.saver, session.id);
    expect(newest[0]).toEqual(latest);
    expect(newest.length).toBeGreaterThanOrEqual(4);
    const phases = newest.map(({ metadata }) => metadata['phase']).reverse();
    expect(phases.filter((phase, i) => phase !== phases[i - 1])).toEqual([
      'starting',
      'thinking',
      // The read and the reply that follows are one activity.
      'acting',
      'idle',
    ]);
    for (const [i, { parent_id, metadata, thread_id, created_at, id }] of newest.entries()) {
      expect(parent_id).toBe(newest[i + 1]?.id ?? null);
      expect(metadata).toMatchObject({ source: 'session', step: newest.length - i, at: created_at });
      expect(thread_id).toBe(session.id);
      expect(await stage.saver.get(session.id, { checkpointId: id })).toEqual(newest[i]);
    }
  });

  test('are listed in pages that join', async () => {
    const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }]);
    const session = await idle(stage);
    const newest = await all(stage.saver, session.id);
    expect(await stage.saver.list(session.id, { limit: 2 })).toEqual(newest.slice(0, 2));
    for (const [i, { id }] of newest.entries()) {
      expect(await stage.saver.list(session.id, { before: id, limit: 2 })).toEqual(
        newest.slice(i + 1, i + 3),
      );
    }
    expect(await stage.saver.list(session.id, { limit: 0 })).toEqual([]);
  });

  test('are the same to a saver that looks again and again as to one that looks for the first time', async () => {
    const turns = Array.from(
      { length: 9 },
      (_, n): ScriptedTurn =>
        n % 3 < 2 ? { toolCalls: [{ name: 'look', args: { at: `place ${n}` } }] } : { text: `Seen ${n}.` },
    );
    const stage = await openSessionStage(turns);
    const session = await stage.sessions.start('looker', { id: stage.id(), message: 'One.' });
    const seen = new Map<string, Checkpoint>();
    const look = async (): Promise<Checkpoint | null> => {
      const latest = await stage.saver.get(session.id);
      if (latest !== null) seen.set(latest.id, latest);
      return latest;
    };
    for (const message of ['Two.', 'Three.']) {
      await expect.poll(async () => (await look())?.metadata['phase'], { interval: 1 }).toBe('idle');
      await session.send(message);
    }
    await untilPhase(session, 'idle');
    expect(canonical((await look())?.state)).toBe(canonical(await session.snapshot()));
    expect(seen.size).toBeGreaterThan(3);
    const fresh = new TemporalSaver(stage.client, { taskQueue: stage.taskQueue });
    const listed = new Map((await all(fresh, session.id)).map((one) => [one.id, one]));
    for (const [id, checkpoint] of seen) expect(checkpoint).toEqual(listed.get(id));
    expect(await fresh.get(session.id)).toEqual(await stage.saver.get(session.id));
  });

  test('agree with the live state when messages race the answers of the world', async () => {
    const turns = Array.from(
      { length: 12 },
      (_, n): ScriptedTurn => (n % 2 === 0 ? LOOK_UP : { text: `Seen ${n}.` }),
    );
    const stage = await openSessionStage([...turns, ...turns]);
    const session = await stage.sessions.start('looker', { id: stage.id(), message: 'One.' });
    await Promise.all([
      session.send('Two.'),
      session.pause(),
      session.send({ text: 'Three.', id: 'three' }),
      session.resume(),
      session.send({ text: 'Three.', id: 'three' }),
      session.send('Four.'),
    ]);
    await untilPhase(session, 'idle');
    const latest = await stage.saver.get(session.id);
    expect(canonical(latest?.state)).toBe(canonical(await session.snapshot()));
    expect(latest?.state['inbox']).toEqual([]);
  });

  test('read the same with no worker, and when the session has completed, was cancelled or terminated', async () => {
    const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }]);
    const waiting = await idle(stage);
    const cancelled = await idle(stage, 'And go.');
    await cancelled.cancel({ by: 'ada', reason: 'enough' });
    await cancelled.result();
    const task = await stage.sessions.start('looker', { id: stage.id(), message: 'Do.', mode: 'task' });
    await task.result();
    const live = canonical(await waiting.snapshot());
    await stage.worker.stop();

    expect(canonical((await stage.saver.get(waiting.id))?.state)).toBe(live);
    await stage.client.workflow.getHandle(waiting.id).terminate('by hand');
    expect(canonical((await stage.saver.get(waiting.id))?.state)).toBe(live);
    expect((await stage.saver.get(cancelled.id))?.state['status']).toMatchObject({
      kind: 'cancelled',
      by: 'ada',
    });
    expect((await stage.saver.get(task.id))?.state['status']).toMatchObject({
      kind: 'completed',
      text: 'Seen.',
    });
    expect((await stage.saver.get(task.id))?.metadata['phase']).toBe('closed');
  });

  test('go on over a rewind: the successor follows the checkpoint that it went back to, and nothing is lost', async () => {
    const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }, { text: 'Again.' }]);
    const session = await idle(stage);
    const before = await all(stage.saver, session.id);
    const target = before[1];
    expect(target).toBeDefined();
    const successor = await stage.sessions.rewind(
      { sessionId: session.id, checkpointId: target?.id ?? '' },
      { agent: 'looker', by: 'ada', reason: 'once more', message: 'Once more.' },
    );
    await untilPhase(successor, 'idle');
    const after = await all(stage.saver, session.id);
    const own = after.filter(({ id }) => id.split(':')[0] !== target?.id.split(':')[0]);
    expect(own.length).toBeGreaterThan(1);
    expect(own.at(-1)?.parent_id).toBe(target?.id);
    expect(after.slice(own.length).map(({ id }) => id)).toEqual(
      expect.arrayContaining(before.map(({ id }) => id)),
    );
    expect(canonical((await stage.saver.get(session.id))?.state)).toBe(canonical(await successor.snapshot()));
    expect((await stage.saver.list(session.id, { before: own.at(-1)?.id })).length).toBeGreaterThan(0);
  });

  test('are null and nothing for unknown ids, and for ids of another session', async () => {
    const stage = await openSessionStage([{ text: 'One.' }, { text: 'Two.' }]);
    const [one, two] = [await idle(stage), await idle(stage)];
    const stranger = (await stage.saver.get(two.id))?.id ?? '';
    const [own] = (await all(stage.saver, one.id)).map(({ id }) => id.split(':')[0]);
    const unknown = [
      stranger,
      'x',
      `${own}:1`,
      `${own}:2`,
      `${own}:999999`,
      `${own}:0`,
      `${own}`,
      stranger.replace(/.:/, '0:'),
    ];
    for (const id of unknown) {
      expect(await stage.saver.get(one.id, { checkpointId: id }), id).toBeNull();
      expect(await stage.saver.list(one.id, { before: id }), id).toEqual([]);
    }
    expect(await stage.saver.get(stage.id('nobody'))).toBeNull();
    expect(await stage.saver.list(stage.id('nobody'))).toEqual([]);
  });

  test('are isolated from what was returned', async () => {
    const stage = await openSessionStage([{ text: 'One.' }]);
    const session = await idle(stage);
    const [first] = await stage.saver.list(session.id);
    const kept = structuredClone(first);
    if (first !== undefined) first.state['transcript'] = [];
    expect((await stage.saver.list(session.id))[0]).toEqual(kept);
  });

  test('fail closed when the history is no session of ours, or cannot be decoded', async () => {
    const stage = await openSessionStage([{ text: 'One.' }]);
    const id = stage.id();
    const start = { workflowId: id, taskQueue: stage.taskQueue, args: [{ agent: 5 }] };
    await (await stage.client.workflow.start('agentSession', start)).result().catch(() => undefined);
    expect(await rejection(stage.saver.get(id))).toMatchObject({ code: 'CHECKPOINT_CORRUPTION' });

    const session = await idle(stage);
    const { connection, options } = stage.client;
    const blind = new Client({
      connection,
      namespace: options.namespace,
      dataConverter: {
        payloadCodecs: [
          { encode: async (payloads) => payloads, decode: () => Promise.reject(new Error('no key')) },
        ],
      },
    });
    const saver = new TemporalSaver(blind, { taskQueue: stage.taskQueue });
    for (const call of [() => saver.get(session.id), () => saver.list(session.id)]) {
      expect(await rejection(call())).toMatchObject({
        code: 'CHECKPOINT_CORRUPTION',
        message: expect.stringContaining('no key'),
      });
    }
  });

  test.each([
    ['the latest', 'describeWorkflowExecution', null, (saver: TemporalSaver, id: string) => saver.get(id)],
    ['a list', 'describeWorkflowExecution', [], (saver: TemporalSaver, id: string) => saver.list(id)],
    [
      'a list',
      'getWorkflowExecutionHistoryReverse',
      [],
      (saver: TemporalSaver, id: string) => saver.list(id),
    ],
  ] as const)(
    'are gone when %s is read while the session is deleted, after %s',
    async (_, call, expected, read) => {
      const stage = await openSessionStage([{ text: 'Seen.' }]);
      const session = await idle(stage);
      const { workflowService } = stage.client;
      const ask = workflowService[call].bind(workflowService) as (request: object) => Promise<object>;
      // The deletion does not share the deadline of the request that it follows.
      const apart = AsyncLocalStorage.snapshot();
      const asked = vi.spyOn(workflowService, call).mockImplementationOnce(async (request: object) => {
        const answer = await ask(request);
        const other = new TemporalSaver(stage.client, { taskQueue: stage.taskQueue });
        await apart(() => other.delete(session.id, { end: true }));
        return answer as never;
      });
      try {
        expect(await read(stage.saver, session.id)).toEqual(expected);
      } finally {
        asked.mockRestore();
      }
    },
  );

  test('are deleted with the session: not while it runs, unless it is to be ended', async () => {
    const stage = await openSessionStage([{ text: 'One.' }, { text: 'Two.' }]);
    const running = await idle(stage);
    expect(await rejection(stage.saver.delete(running.id))).toMatchObject({ code: 'SESSION_BUSY' });
    expect(await stage.saver.get(running.id)).not.toBeNull();
    await stage.saver.delete(running.id, { end: true });
    expect(await stage.saver.get(running.id)).toBeNull();
    expect(await rejection(running.state())).toMatchObject({ code: 'SESSION_NOT_FOUND' });

    const closed = await stage.sessions.start('looker', { id: stage.id(), message: 'Do.', mode: 'task' });
    await closed.result();
    await stage.saver.delete(closed.id);
    expect(await stage.saver.list(closed.id)).toEqual([]);
    await stage.saver.delete(closed.id);
  });
});
