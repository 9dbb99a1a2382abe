/**
 * Histories of sessions that were recorded once: they must replay on the present workflow, and fold to the state
 * that was stored with them. A new field of the state is fine; another value of a stored one is not.
 *
 * `PERDURE_RECORD=<suffix> npm test -- test/history/stored-histories` records the stories again, in files of that
 * suffix.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { defaultPayloadConverter } from '@temporalio/common';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { foldHistory } from '../../src/history/index.ts';
import { runsUpTo } from '../../src/temporal/executions.ts';
import type { HistoryEvent } from '../../src/temporal/index.ts';
import { replay } from '../session/support/sound.ts';
import { openStage } from '../support/stage.ts';
import { DIRECTORY, PLAIN, readStored, type Stored, storedFiles } from './stored.ts';
import { STORIES } from './stories.ts';

const { History } = proto.temporal.api.history.v1;
const SUFFIX = process.env['PERDURE_RECORD'];

async function folded(events: readonly HistoryEvent[]): Promise<Omit<Stored, 'history'>> {
  const checkpoints: Stored['checkpoints'] = [];
  const { state } = await foldHistory([events], PLAIN, {
    onTask: ({ eventId, state: { position } }) =>
      void checkpoints.push([eventId, position.count, position.digest]),
  });
  return { checkpoints, state };
}

test.runIf(SUFFIX !== undefined).each(Object.entries(STORIES))('record %s', async (name, story) => {
  const file = new URL(`${name}-${SUFFIX}.json`, DIRECTORY);
  // A stored history is never replaced.
  expect(existsSync(file)).toBe(false);
  const stage = await openStage(story.script);
  await stage.startWorker([story.agent(stage)]);
  const { message, mode = 'chat' } = story;
  const session = await stage.sessions.start('story', { id: `story-${name}`, message, mode });
  await story.act(session, stage);
  const { runId } = await stage.client.workflow.getHandle(session.id).describe();
  const run = (await runsUpTo(stage.client, session.id, runId)).at(story.run ?? -1);
  const { events } = await stage.client.workflow.getHandle(session.id, run).fetchHistory();
  const history = History.toObject(History.fromObject({ events: events ?? [] }), {
    enums: String,
    longs: String,
    bytes: String,
  });
  const stored: Stored = { history, ...(await folded(events ?? [])) };
  // Identities, sticky queues and stacks name the machine, which is nobody's business.
  const text = JSON.stringify(stored).replaceAll(`@${hostname()}`, '@host').replaceAll(process.cwd(), '');
  await writeFile(file, `${text}\n`);
});

const files = storedFiles();

test('there is a stored history of each story', () => {
  for (const name of Object.keys(STORIES))
    expect(files.some((file) => file.startsWith(`${name}-`))).toBe(true);
});

test.each(files)('%s replays, and folds to what was stored', async (file) => {
  const { decoded, ...stored } = readStored(file);
  await replay(decoded, stored.state?.sessionId ?? '');
  const { checkpoints, state } = await folded(decoded.events);
  expect(checkpoints).toEqual(stored.checkpoints);
  expect(state).toMatchObject(stored.state ?? {});
});

test.each(files)('%s reads the same with names in its updates that would be refused today', async (file) => {
  const { decoded, ...stored } = readStored(file);
  const given = decoded.events.flatMap(
    ({ workflowExecutionUpdateAcceptedEventAttributes: event }) =>
      event?.acceptedRequest?.input?.args?.payloads ?? [],
  );
  for (const payload of given) {
    const value: unknown = defaultPayloadConverter.fromPayload(payload);
    payload.data = defaultPayloadConverter.toPayload(withUnknownNames(value)).data ?? null;
  }
  expect(given.length > 0).toBe(!file.startsWith('reads-'));
  // Only a validator refuses them, and none is asked of what is on record.
  await replay(decoded, stored.state?.sessionId ?? '');
  const { checkpoints, state } = await folded(decoded.events);
  expect(checkpoints).toEqual(stored.checkpoints);
  expect(state).toMatchObject(stored.state ?? {});
});

/** A value with a name that no schema knows in each of its objects, but for a call's arguments, which are free. */
function withUnknownNames(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const fields = Object.entries(value).map(([name, item]: [string, unknown]) => [
    name,
    name === 'args' ? item : withUnknownNames(item),
  ]);
  return { ...Object.fromEntries(fields), USD: 2 };
}
