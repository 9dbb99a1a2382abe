/** Histories as JSON, read without the SDK's own reader. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import proto from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { expect, inject, test } from 'vitest';
import { defineAgent, PerdurePlugin } from '../../src/index.ts';
import { findTemporalBinary } from '../../src/server/index.ts';
import { historyFromJSON, historyToJSON } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, untilPhase } from '../support/stage.ts';

const { History } = proto.temporal.api.history.v1;
type IHistory = proto.temporal.api.history.v1.IHistory;

const plain = (history: IHistory): unknown =>
  History.toObject(History.fromObject(history), { longs: String, enums: String, bytes: String });

test('a history from the command line of Temporal is the history of the server, and replays', async () => {
  const stage = await openStage(() => ({ text: 'Hello.' }));
  await stage.startWorker([
    defineAgent({ name: 'polite', model: stage.provider('m'), instructions: 'Greet.' }),
  ]);
  const session = await stage.sessions.start('polite', { id: stage.id(), message: 'Hello?' });
  await untilPhase(session, 'idle');
  const { address, namespace } = inject('temporal');
  const where = ['--address', address, '--namespace', namespace];
  const { path } = await findTemporalBinary();
  const show = ['workflow', 'show', '--workflow-id', session.id, '--output', 'json', ...where];
  const { stdout } = await promisify(execFile)(path, show, { maxBuffer: 50_000_000 });
  const fetched = await stage.client.workflow.getHandle(session.id).fetchHistory();

  const read = historyFromJSON(stdout);
  expect(plain(read)).toEqual(plain(fetched));
  expect(plain(historyFromJSON(historyToJSON(fetched)))).toEqual(plain(fetched));
  await Worker.runReplayHistory({ plugins: [new PerdurePlugin({ agents: [] })] }, read, session.id);
});

test.each([['{'], ['{}'], ['null'], ['{"events":[{"eventId":{}, "eventType": 1, "eventTime": "x"}]}']])(
  'what is no history is refused: %s',
  async (text) => {
    const error = await rejection((async () => historyFromJSON(text))());
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'json' } });
  },
);
