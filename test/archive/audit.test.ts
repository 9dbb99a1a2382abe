import { expect, test } from 'vitest';
import { type Audit, auditSession } from '../../src/archive/door.ts';
import type { Checkpoint, Session } from '../../src/index.ts';
import { type ArchiveStage, inEachHome } from './support.ts';

/** A session, what its history says, and an audit of what is appended to the archive instead. */
interface Case {
  session: Session;
  /** Oldest first. */
  history: Checkpoint[];
  audit(records: readonly Checkpoint[]): Promise<Audit>;
}

async function openCase(stage: ArchiveStage): Promise<Case> {
  const { client, archive } = stage;
  const session = await stage.talk('one', 'two');
  const history = (await stage.present(session.id)).reverse();
  const runId = history[0]?.id.split(':')[0] ?? '';
  return {
    session,
    history,
    audit: async (checkpoints) => {
      await archive.delete(session.id);
      const epoch = await archive.epoch(session.id);
      const place = { sessionId: session.id, runId, startedAt: 1, epoch, after: 0 };
      const piece = { ...place, checkpoints, previous: null, events: 99, complete: false };
      expect(await archive.append(piece)).not.toBeNull();
      // What is there is whole, and as it was stored: only the history can tell that it is wrong.
      expect(await archive.list(session.id, null, 1_000)).toEqual(checkpoints.toReversed());
      return auditSession(client, archive, session.id);
    },
  };
}

/** The checkpoint at a place. */
function at(history: readonly Checkpoint[], index: number): Checkpoint {
  const found = history.at(index);
  if (found === undefined) throw new Error('too few checkpoints');
  return found;
}

/** Makes a record differ. */
type Change = (record: Checkpoint) => unknown;

/** A copy of which one record has been changed. */
function changed(history: readonly Checkpoint[], index: number, change: Change): Checkpoint[] {
  const copy = structuredClone(history) as Checkpoint[];
  change(at(copy, index));
  return copy;
}

inEachHome('an audit of an archive ', (server) => {
  test('finds nothing where the archive is what the history says, and counts what is to come', async () => {
    const { session, history, audit } = await openCase(await server.open());
    const found = { sessionId: session.id, runs: 1, difference: null };
    expect(history.length).toBeGreaterThan(4);
    expect(await audit(history)).toEqual({ ...found, equal: history.length, pending: 0 });
    expect(await audit(history.slice(0, -2))).toEqual({
      ...found,
      equal: history.length - 2,
      pending: 2,
    });
    expect(await audit([])).toEqual({ ...found, equal: 0, pending: history.length });
  });

  test('leaves for later what is archived while it reads', async () => {
    const stage = await server.open();
    const { session, history, audit } = await openCase(stage);
    await audit(history);
    const { archive, client } = stage;
    // Nothing was archived when the audit began.
    const growing = { run: async () => null, walk: archive.walk.bind(archive) } as unknown as typeof archive;
    const found = { runs: 1, equal: 0, pending: history.length, difference: null };
    expect(await auditSession(client, growing, session.id)).toMatchObject(found);
  });

  test('names the place at which a record differs, and what each has there', async () => {
    const { history, audit } = await openCase(await server.open());
    const { id: checkpointId, state, metadata, parent_id } = at(history, 3);
    const [message] = state['transcript'] as object[];
    const cases: [Change, path: string, archived: unknown, history: unknown][] = [
      [(record) => Object.assign(record.state, { turn: 77 }), '/state/turn', 77, state['turn']],
      [
        (record) => Object.assign(firstOf(record.state['transcript']), { role: 'assistant' }),
        '/state/transcript/0/role',
        'assistant',
        'user',
      ],
      [(record) => Object.assign(record.state, { transcript: [] }), '/state/transcript/0', null, message],
      [(record) => Object.assign(record.state, { 'a/b~c': [1] }), '/state/a~1b~0c', [1], null],
      [(record) => Reflect.deleteProperty(record.state, 'agent'), '/state/agent', null, 'writer'],
      [(record) => Object.assign(record.metadata, { step: 5 }), '/metadata/step', 5, metadata['step']],
      [(record) => Object.assign(record, { parent_id: null }), '/parent_id', null, parent_id],
      [
        (record) => Object.assign(record, { created_at: '1999-01-01T00:00:00.000Z' }),
        '/created_at',
        '1999-01-01T00:00:00.000Z',
        at(history, 3).created_at,
      ],
    ];
    for (const [change, path, archived, said] of cases) {
      expect(await audit(changed(history, 3, change)), path).toMatchObject({
        equal: 3,
        pending: 0,
        difference: {
          checkpointId,
          path,
          archived,
          history: said,
          message: `${checkpointId} differs at ${path}`,
        },
      });
    }
  });

  test('names a checkpoint that the history has and the archive has not', async () => {
    const { history, audit } = await openCase(await server.open());
    for (const index of [0, 3, history.length - 2]) {
      const lost = at(history, index);
      expect(await audit(history.filter((record) => record !== lost))).toMatchObject({
        equal: index,
        difference: {
          checkpointId: lost.id,
          path: '',
          archived: null,
          history: lost,
          message: `${lost.id} is in the history, but not in the archive`,
        },
      });
    }
  });

  test('names a record that the archive has and the history has not, wherever it stands', async () => {
    const { history, audit } = await openCase(await server.open());
    for (const after of [3, history.length - 1]) {
      const before = at(history, after);
      const [runId, eventId] = before.id.split(':');
      const invented = { ...structuredClone(before), id: `${runId}:${Number(eventId) + 1}` };
      expect(history.map(({ id }) => id)).not.toContain(invented.id);
      expect(await audit(history.toSpliced(after + 1, 0, invented))).toMatchObject({
        equal: after + 1,
        difference: {
          checkpointId: invented.id,
          path: '',
          archived: invented,
          history: null,
          message: `${invented.id} is in the archive, but not in the history`,
        },
      });
    }
  });
});

/** The first message of a transcript. */
function firstOf(transcript: unknown): object {
  return (transcript as object[])[0] ?? {};
}
