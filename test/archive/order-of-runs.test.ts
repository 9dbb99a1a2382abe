/** The runs of a session: in the order of their links whatever the server's clock has said, and by odd ids as well. */
import type { Client, WorkflowClient, WorkflowExecutionInfo } from '@temporalio/client';
import { describe, expect, test } from 'vitest';
import { ArchivedSaver, auditSession } from '../../src/archive/door.ts';
import { findRuns } from '../../src/checkpoints/runs.ts';
import { type Checkpoint, TemporalSaver } from '../../src/index.ts';
import { deleteRun, untilGone } from '../../src/temporal/executions.ts';
import { untilPhase } from '../support/stage.ts';
import { startSqlite } from './homes.ts';
import { type ArchiveStage, useArchiveServer } from './support.ts';

const server = useArchiveServer(startSqlite);

const HOUR = 3_600_000;
const ADA = { agent: 'writer', by: 'ada', reason: 'once more' };
const runOf = ({ id }: Checkpoint): string => id.split(':')[0] ?? '';
const runsOf = (checkpoints: readonly Checkpoint[]): string[] => [...new Set(checkpoints.map(runOf))];

/** A session with two runs or more: each leaves the one before it, for one of its first checkpoints. */
async function rewound(stage: ArchiveStage, id: string, times = 1): Promise<void> {
  const session = await stage.sessions.start('writer', { id, message: 'one' });
  await untilPhase(session, 'idle');
  for (let i = 0; i < times; i++) {
    const checkpointId = (await stage.saver.get(id))?.id ?? '';
    await stage.sessions.rewind({ sessionId: id, checkpointId }, { ...ADA, message: 'again' });
    await untilPhase(session, 'idle');
  }
}

/** A client to whom visibility dates each run before the one that it has left, or shows only some of the runs. */
function shifted(client: Client, change: (info: WorkflowExecutionInfo) => Date | null): Client {
  const workflow = Object.create(client.workflow, {
    list: {
      value: async function* (...args: Parameters<WorkflowClient['list']>) {
        for await (const info of client.workflow.list(...args)) {
          const startTime = change(info);
          if (startTime !== null) yield { ...info, startTime };
        }
      },
    },
  }) as WorkflowClient;
  return Object.create(client, { workflow: { value: workflow } }) as Client;
}

describe('the order of runs', () => {
  test('is that of their links, when the clock stepped back before each of them', async () => {
    const stage = await server.open();
    const id = `clock-${stage.name}`;
    await rewound(stage, id, 3);
    const all = await stage.present(id);
    expect(runsOf(all)).toHaveLength(4);
    const ages = runsOf(all);
    const back = shifted(stage.client, ({ runId }) => new Date(ages.indexOf(runId) * HOUR));
    // Every run is visible, so that the clock would decide.
    await expect
      .poll(async () => {
        const seen: string[] = [];
        for await (const { runId } of back.workflow.list({ query: `WorkflowId = '${id}'` })) seen.push(runId);
        return seen.sort();
      })
      .toEqual([...ages].sort());
    const saver = new TemporalSaver(back);
    expect(await saver.list(id, { limit: 1_000 })).toEqual(all);
    expect(await saver.get(id)).toEqual(all[0]);
    for (const [at, { id: before }] of all.entries())
      expect(await saver.list(id, { before, limit: 3 })).toEqual(all.slice(at + 1, at + 4));
  });

  test('is found by the links alone where visibility lags', async () => {
    const stage = await server.open();
    const id = `lag-${stage.name}`;
    await rewound(stage, id, 2);
    const all = await stage.present(id);
    const blind = shifted(stage.client, () => null);
    expect(await new TemporalSaver(blind).list(id, { limit: 1_000 })).toEqual(all);
    expect(runsOf(all)).toHaveLength(3);
    await new TemporalSaver(blind).delete(id, { end: true });
    expect(await stage.present(id)).toEqual([]);
    expect(await findRuns(stage.client, id, 'agentSession')).toEqual([]);
  });

  test('holds over resets, of which each names the run that it was made from', async () => {
    const stage = await server.open();
    const id = `reset-${stage.name}`;
    await rewound(stage, id, 1);
    const reset = async (): Promise<void> => {
      const newest = await stage.saver.list(id, { limit: 3 });
      const [, eventId] = newest.at(-1)?.id.split(':') ?? [];
      await stage.client.workflowService.resetWorkflowExecution({
        namespace: stage.client.options.namespace,
        workflowExecution: { workflowId: id },
        reason: 'test',
        requestId: `${id}-${eventId}-${newest[0]?.id}`,
        workflowTaskFinishEventId: Number(eventId) as never,
      });
      await untilPhase(stage.sessions.get(id), 'idle');
    };
    const made = (await stage.client.workflow.getHandle(id).describe()).runId;
    await reset();
    const once = (await stage.client.workflow.getHandle(id).describe()).runId;
    await reset();
    const twice = (await stage.client.workflow.getHandle(id).describe()).runId;
    const back = shifted(stage.client, ({ runId }) => new Date([twice, once, made].indexOf(runId) * HOUR));
    const runs = runsOf(await new TemporalSaver(back).list(id, { limit: 1_000 }));
    expect(runs.slice(0, 3)).toEqual([twice, once, made]);
    expect(runs).toHaveLength(4);
  });

  test('is kept in an archive, when its first run was dated an hour later than those after it', async () => {
    const stage = await server.open();
    const id = `archived-${stage.name}`;
    await rewound(stage, id, 2);
    const all = await stage.present(id);
    const [newest = '', , oldest = ''] = runsOf(all);
    const first = all.filter((checkpoint) => runOf(checkpoint) === oldest).reverse();
    await stage.archive.append({
      sessionId: id,
      runId: oldest,
      startedAt: Date.now() + HOUR,
      epoch: await stage.archive.epoch(id),
      after: 0,
      checkpoints: first.slice(0, 1),
      previous: null,
      events: 1,
      complete: false,
    });
    const stop = await stage.startExporter();
    await stage.untilArchived(id);
    expect(await stage.archive.runs(id)).toEqual(runsOf(all).reverse());
    const saver = new ArchivedSaver(stage.saver, stage.archive);
    const agree = async (): Promise<void> => {
      expect(await saver.list(id, { limit: 1_000 })).toEqual(all);
      for (const [at, { id: before }] of all.entries())
        expect(await saver.list(id, { before, limit: 3 })).toEqual(all.slice(at + 1, at + 4));
    };
    await agree();
    for (const run of [oldest, newest]) {
      await deleteRun(stage.client, id, run);
      await untilGone(stage.client, id, run);
      await agree();
    }
    // All is gone but the run in the middle, and then that: who goes on follows the last that the archive has.
    await stage.saver.delete(id, { end: true });
    const from = { sessionId: id, checkpointId: first[0]?.id ?? '' };
    await stage.sessions.rewind({ ...from, checkpointId: first.at(-1)?.id ?? '' }, { ...ADA, saver });
    const session = stage.sessions.get(id);
    await untilPhase(session, 'idle');
    expect((await stage.saver.get(id))?.state['origin']).toMatchObject({ leaves: newest });
    const { runId } = await stage.client.workflow.getHandle(id).describe();
    await expect
      .poll(() => stage.archive.runs(id), { timeout: 60_000 })
      .toEqual([...runsOf(all).reverse(), runId]);
    await stop();
  });
});

describe('an id of odd characters', () => {
  const odd = [
    "it's",
    "two''quotes",
    'per%cent_under',
    'emoji 😀',
    ' spaces inside and around ',
    'slash/es//and?query#part',
    'ü-ñ-漢',
    '--comment;',
    "or' OR 'a' = 'a",
  ];
  test.each(odd)('%j is listed, read, audited, exported and deleted over a rewind', async (odd) => {
    const stage = await server.open();
    const id = `${stage.name}${odd}.`;
    await rewound(stage, id, 1);
    await expect.poll(() => findRuns(stage.client, id, 'agentSession')).toHaveLength(2);
    const all = await stage.present(id);
    expect(runsOf(all)).toHaveLength(2);
    const oldest = all.at(-1);
    expect(await stage.saver.get(id, { checkpointId: oldest?.id })).toEqual(oldest);
    const stop = await stage.startExporter();
    await stage.untilArchived(id);
    await stop();
    expect(await auditSession(stage.client, stage.archive, id)).toMatchObject({
      runs: 2,
      equal: all.length,
      difference: null,
    });
    await stage.saver.delete(id, { end: true });
    expect(await stage.present(id)).toEqual([]);
    expect(await stage.saver.get(id, { checkpointId: oldest?.id })).toBeNull();
  });

  const unfindable = [
    'quo"te',
    'back\\slash',
    'ends with \\',
    'new\nline',
    'tab\tulator',
    'NUL\0',
    "'quoted'",
    "ends with '",
  ];
  test.each(unfindable)('%j that visibility cannot find starts no session', async (id) => {
    const stage = await server.open();
    const refusal = { code: 'INVALID_ARGUMENT', details: { field: 'id' } };
    await expect(stage.sessions.start('writer', { id })).rejects.toMatchObject(refusal);
    const from = { sessionId: 'any', checkpointId: '00000000-0000-4000-8000-000000000000:4' };
    await expect(stage.sessions.fork(from, { ...ADA, id })).rejects.toMatchObject(refusal);
    await expect(stage.sessions.list({ tenant: id }).next()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: { field: 'tenant' },
    });
  });

  test('of a session that was started before such were refused, is followed by its links', async () => {
    const stage = await server.open();
    const id = `back\\slash "${stage.name}"\n`;
    const start = {
      workflowId: id,
      taskQueue: 'archived',
      args: [{ agent: 'writer', message: { text: 'one' } }],
    };
    await stage.client.workflow.start('agentSession', start);
    const session = stage.sessions.get(id);
    await untilPhase(session, 'idle');
    const checkpointId = (await stage.saver.get(id))?.id ?? '';
    await stage.sessions.rewind({ sessionId: id, checkpointId }, { ...ADA, message: 'again' });
    await untilPhase(session, 'idle');
    const all = await stage.present(id);
    expect(runsOf(all)).toHaveLength(2);
    const stop = await stage.startExporter();
    await stage.untilArchived(id);
    await stop();
    expect(await auditSession(stage.client, stage.archive, id)).toMatchObject({ runs: 2, equal: all.length });
    await stage.saver.delete(id, { end: true });
    expect(await stage.saver.get(id, { checkpointId })).toBeNull();
  });
});
