import { describe, expect, test } from 'vitest';
import { ArchivedSaver, archiveStatus, auditSession } from '../../src/archive/door.ts';
import { deleteRun, untilGone } from '../../src/temporal/executions.ts';
import { until, untilPhase } from '../support/stage.ts';
import { type ArchiveStage, expectAllArchived, inEachHome } from './support.ts';

/** Removes a run as the namespace's retention does. */
async function retire({ client }: ArchiveStage, sessionId: string, runId: string): Promise<void> {
  await deleteRun(client, sessionId, runId);
  await untilGone(client, sessionId, runId);
}

const runOf = (id: string): string => id.split(':')[0] ?? '';

inEachHome('', (server, locked) => {
  describe('the exporter', () => {
    test('stores each checkpoint once, as it happens, also when it was stopped meanwhile', async () => {
      const stage = await server.open();
      const session = await stage.talk('one');
      const stop = await stage.startExporter();
      await stage.untilArchived(session.id);
      await session.send('two');
      await untilPhase(session, 'idle');
      await stage.untilArchived(session.id);
      const { archiveId } = await archiveStatus(stage.client, stage.name);
      await stop();

      await session.send('three');
      await until(session, ({ turn, phase }) => turn === 6 && phase === 'idle');
      const before = await stage.archive.status();
      await stage.startExporter();
      const stored = await stage.untilArchived(session.id);
      expect(new Set(stored.map(({ id }) => id)).size).toBe(stored.length);
      const lastUse = Date.now();
      await expect
        .poll(async () => Date.parse((await stage.archive.status()).upTo ?? ''), { timeout: 60_000 })
        .toBeGreaterThan(lastUse);
      await expect
        .poll(async () => (await archiveStatus(stage.client, stage.name)).upTo, { timeout: 60_000 })
        .not.toBe(before.upTo);
      expect(await archiveStatus(stage.client, stage.name)).toMatchObject({
        archiveId,
        stored: expect.any(Number),
        failure: null,
        unreadable: [],
      });
      // Nothing that has not happened is there, and what the history says is what the archive says.
      await expectAllArchived(stage, session.id, stored);
    });

    test('shows why it cannot write, and leaves nothing out when it can again', async () => {
      const stage = await server.open();
      const session = await stage.talk('one');
      const stop = await stage.startExporter();
      await stage.untilArchived(session.id);
      const failure = async (): Promise<string> =>
        (await archiveStatus(stage.client, stage.name)).failure?.message ?? '';

      const unlock = await stage.home.lock();
      await session.send('two');
      await untilPhase(session, 'idle');
      await expect.poll(failure, { timeout: 60_000 }).toContain(locked);
      const status = await archiveStatus(stage.client, stage.name);
      expect(status.failure).toMatchObject({
        attempts: expect.any(Number),
        since: expect.stringMatching(/^20/),
      });
      await unlock();
      await stage.untilArchived(session.id);
      await expect.poll(failure, { timeout: 60_000 }).toBe('');

      await stage.home.setVersion(99);
      await session.send('three');
      await untilPhase(session, 'idle');
      await expect.poll(failure, { timeout: 60_000 }).toContain('has schema version 99');
      await stage.home.setVersion(1);
      const stored = await stage.untilArchived(session.id);
      expect(stored[0]?.state['turn']).toBe(6);
      await stop();
    });
  });

  test('a history that cannot be read is named, and holds up no other', async () => {
    const stage = await server.open();
    const foreign = `foreign-${stage.name}`;
    const start = { workflowId: foreign, taskQueue: 'archived', args: [{ agent: 5 }] };
    await (await stage.client.workflow.start('agentSession', start)).result().catch(() => undefined);
    const session = await stage.talk('one');
    await stage.startExporter();
    await stage.untilArchived(session.id);
    await expect
      .poll(async () => (await archiveStatus(stage.client, stage.name)).unreadable, { timeout: 60_000 })
      .toMatchObject([{ sessionId: foreign, message: expect.stringContaining('cannot be computed') }]);
    await retire(stage, foreign, (await stage.client.workflow.getHandle(foreign).describe()).runId);
  });

  describe('a checkpoint that only the archive has', () => {
    test('is forked and rewound to: from a run that is gone, and from a session that is gone as a whole', async () => {
      const stage = await server.open();
      const session = await stage.talk('one', 'two');
      const all = await stage.present(session.id);
      const atOne = all.findLast(
        ({ state, metadata }) => state['turn'] === 2 && metadata['phase'] === 'idle',
      );
      const from = { sessionId: session.id, checkpointId: atOne?.id ?? '' };
      const who = { by: 'ada', reason: 'once more' };
      await stage.sessions.rewind(from, { ...who, message: 'three' });
      const second = await untilPhase(session, 'idle');
      const stop = await stage.startExporter();
      await stage.untilArchived(session.id);
      const saver = new ArchivedSaver(stage.saver, stage.archive);
      const replays = async (of: typeof session): Promise<string[]> =>
        (await of.calls()).items.map(
          ({ args, replayOf }) => `${(args as { text: string }).text}${replayOf === null ? '' : ' again'}`,
        );

      await retire(stage, session.id, runOf(from.checkpointId));
      await stage.sessions.rewind(from, { ...who, saver, message: 'two' });
      await until(session, ({ runId, phase }) => runId !== second.runId && phase === 'idle');
      // Both what the run that is gone and what the run after it have done is answered from the record.
      await session.send('three');
      const third = await until(session, ({ turn, phase }) => turn === 6 && phase === 'idle');
      expect(await replays(session)).toEqual(['one', 'two again', 'three again']);
      const latest = (await stage.saver.get(session.id))?.id;
      await expect
        .poll(async () => (await stage.archive.list(session.id, null, 1))[0]?.id, { timeout: 60_000 })
        .toBe(latest);
      await stop();

      await retire(stage, session.id, second.runId);
      await retire(stage, session.id, third.runId);
      expect(await stage.saver.get(session.id)).toBeNull();
      const fork = await stage.sessions.fork(from, { ...who, saver, message: 'two' });
      await untilPhase(fork, 'idle');
      expect(await replays(fork)).toEqual(['one', 'two']);
      expect((await fork.transcript()).items[0]).toEqual(
        (atOne?.state['transcript'] as object[] | undefined)?.[0],
      );

      await stage.sessions.rewind(from, { ...who, saver, message: 'three' });
      await untilPhase(session, 'idle');
      expect(await replays(session)).toEqual(['one', 'three again']);
      expect((await stage.saver.get(session.id))?.state['origin']).toMatchObject({
        kind: 'rewind',
        by: 'ada',
      });

      await expect(
        stage.sessions.fork({ ...from, checkpointId: `${from.checkpointId}9999` }, { ...who, saver }),
      ).rejects.toMatchObject({ code: 'CHECKPOINT_NOT_FOUND' });
    });
  });

  describe('a saver with an archive', () => {
    test('answers as before when retention has removed a run, and when it has removed all', async () => {
      const stage = await server.open();
      const session = await stage.talk('one');
      const [atOne] = await stage.present(session.id);
      await session.send('two');
      await untilPhase(session, 'idle');
      await stage.sessions.rewind(
        { sessionId: session.id, checkpointId: atOne?.id ?? '' },
        { agent: 'writer', by: 'ada', reason: 'once more', message: 'three' },
      );
      const { runId } = await untilPhase(session, 'idle');
      await stage.startExporter();
      const all = await stage.untilArchived(session.id);
      const saver = new ArchivedSaver(stage.saver, stage.archive);
      const agree = async (): Promise<void> => {
        expect(await saver.list(session.id, { limit: 1_000 })).toEqual(all);
        expect(await saver.get(session.id)).toEqual(all[0]);
        expect(await saver.get(session.id, { checkpointId: atOne?.id ?? '' })).toEqual(atOne);
        for (const at of [0, 1, all.length - 2, all.length - 1])
          expect(await saver.list(session.id, { before: all[at]?.id ?? '', limit: 3 })).toEqual(
            all.slice(at + 1, at + 4),
          );
        expect(await saver.list(session.id, { before: `${all[0]?.id}0` })).toEqual([]);
        expect(await saver.get('nobody')).toBeNull();
      };
      await agree();

      expect(runOf(atOne?.id ?? '')).not.toBe(runId);
      await retire(stage, session.id, runOf(atOne?.id ?? ''));
      expect((await stage.present(session.id)).length).toBeLessThan(all.length);
      await agree();

      await retire(stage, session.id, runId);
      expect(await stage.saver.get(session.id)).toBeNull();
      await agree();
      await expect(auditSession(stage.client, stage.archive, session.id)).rejects.toMatchObject({
        code: 'SESSION_NOT_FOUND',
      });

      await saver.delete(session.id);
      expect(await saver.list(session.id)).toEqual([]);
    });

    test('keeps a session that only the archive has from being hidden by a thread of its id', async () => {
      const stage = await server.open();
      const session = await stage.talk('one');
      const stop = await stage.startExporter();
      const all = await stage.untilArchived(session.id);
      await stop();
      const saver = new ArchivedSaver(stage.saver, stage.archive);
      // While the server has it, a put is an edit of the session.
      const who = { by: 'ada', reason: 'a typing error' };
      const state = structuredClone(all[0]?.state ?? {});
      state['scratchpadRoot'] = '/notes';
      expect((await saver.put(session.id, state, { metadata: who })).state['scratchpadRoot']).toBe('/notes');
      const refusal = { code: 'CONFLICT', message: expect.stringContaining(session.id) };
      await expect(saver.putStep(session.id, 'key', 1)).rejects.toMatchObject(refusal);

      await retire(stage, session.id, runOf(all[0]?.id ?? ''));
      await expect(saver.put(session.id, { any: 1 })).rejects.toMatchObject(refusal);
      await expect(saver.putStep(session.id, 'key', 1)).rejects.toMatchObject(refusal);
      expect(await saver.get(session.id)).toEqual(all[0]);
      expect(await stage.saver.get(session.id)).toBeNull();

      // A saver that knows of no archive puts there all the same: the rewind refuses, and hides nothing.
      await stage.saver.put(session.id, { any: 1 });
      const from = { sessionId: session.id, checkpointId: all[0]?.id ?? '' };
      await expect(stage.sessions.rewind(from, { agent: 'writer', ...who, saver })).rejects.toMatchObject(
        refusal,
      );
      expect((await stage.saver.get(session.id))?.state).toEqual({ any: 1 });
    });

    test('puts to its threads in the order of the calls, and what the calls were given', async () => {
      const stage = await server.open();
      const saver = new ArchivedSaver(stage.saver, stage.archive);
      const thread = `thread-${stage.name}`;
      const state = { n: 0 };
      const puts = Array.from({ length: 20 }, () => {
        state.n += 1;
        return saver.put(thread, state, { id: `id-${state.n}` });
      });
      await Promise.all(puts);
      const listed = await saver.list(thread, { limit: 50 });
      expect(listed.map((one) => one.state['n'])).toEqual(Array.from({ length: 20 }, (_, n) => 20 - n));
      await expect(saver.put(thread, { n: Number.NaN })).rejects.toMatchObject({ code: 'NOT_JSON' });
      await expect(saver.put(5 as unknown as string, {})).rejects.toThrow(TypeError);
    });

    test('a session is deleted with the sub-agents below it, and with no other session', async () => {
      const stage = await server.open();
      const session = await stage.talk('one');
      const [latest] = await stage.present(session.id);
      if (latest === undefined) throw new Error('no checkpoint');
      const store = (sessionId: string, state: object): Promise<unknown> =>
        stage.archive.append({
          sessionId,
          runId: runOf(latest.id),
          startedAt: 1,
          epoch: 0,
          after: 0,
          checkpoints: [{ ...latest, thread_id: sessionId, state: { ...latest.state, ...state } }],
          previous: null,
          events: 9,
          complete: true,
        });
      const child = `${session.id}/research.0123456789`;
      const below = [child, `${child}/look.0123456789`];
      const others = [`${session.id}/notes`, `${session.id}/research.9876543210`, `${session.id}2`];
      await store(session.id, {});
      for (const id of below) await store(id, { parent: { sessionId: session.id } });
      for (const id of others) await store(id, {});
      await new ArchivedSaver(stage.saver, stage.archive).delete(session.id, { end: true });
      for (const id of [session.id, ...below]) expect(await stage.archive.runs(id)).toEqual([]);
      for (const id of others) expect(await stage.archive.list(id, null, 10)).toHaveLength(1);
    });

    test('what was deleted stays deleted, also when an export was under way', async () => {
      const stage = await server.open();
      const session = await stage.talk('one');
      const [latest] = await stage.present(session.id);
      if (latest === undefined) throw new Error('no checkpoint');
      const piece = {
        sessionId: session.id,
        runId: runOf(latest.id),
        startedAt: 1,
        epoch: await stage.archive.epoch(session.id),
        after: 0,
        checkpoints: [latest],
        previous: null,
        events: 9,
        complete: false,
      };
      expect(await stage.archive.append(piece)).toMatchObject({ events: 9, complete: false });
      // The same piece again: somebody else has stored it.
      expect(await stage.archive.append(piece)).toBeNull();
      await stage.archive.delete(session.id);
      expect(await stage.archive.append(piece)).toBeNull();
      expect(await stage.archive.list(session.id, null, 10)).toEqual([]);
    });
  });

  test('an audit names the first difference, and a damaged record is not answered', async () => {
    const stage = await server.open();
    const session = await stage.talk('one', 'two');
    const stop = await stage.startExporter();
    const stored = await stage.untilArchived(session.id);
    await stop();
    const third = stored.at(-3);
    if (third === undefined) throw new Error('too few checkpoints');
    await stage.home.damage(Number(third.id.split(':')[1]));
    await expect(stage.archive.get(session.id, third.id)).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPTION',
      message: expect.stringContaining(third.id),
    });
    expect(await stage.archive.get(session.id, stored.at(-2)?.id ?? '')).toEqual(stored.at(-2));
    expect(await auditSession(stage.client, stage.archive, session.id)).toMatchObject({
      equal: 2,
      difference: { checkpointId: third.id, message: expect.stringContaining('changed since it was stored') },
    });
  });
});
