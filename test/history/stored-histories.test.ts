/**
 * Histories that were recorded once: they must replay on the present workflow. Those of sessions must fold to the state
 * that was stored with them: a new field of the state is fine; another value of a stored one is not.
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
import { WORKFLOW } from '../../src/contract/names.ts';
import { foldHistory } from '../../src/history/index.ts';
import { runsUpTo } from '../../src/temporal/executions.ts';
import type { HistoryEvent } from '../../src/temporal/index.ts';
import { replay } from '../session/support/sound.ts';
import { openStage, type Stage } from '../support/stage.ts';
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

/** Stores the history of a workflow's run: the last one, or one at a place in the session. */
async function store(stage: Stage, name: string, workflowId: string, at = -1): Promise<void> {
  const handle = stage.client.workflow.getHandle(workflowId);
  const { runId, type } = await handle.describe();
  const run = (await runsUpTo(stage.client, workflowId, runId)).at(at);
  const { events } = await stage.client.workflow.getHandle(workflowId, run).fetchHistory();
  const history = History.toObject(History.fromObject({ events: events ?? [] }), {
    enums: String,
    longs: String,
    bytes: String,
  });
  const isSession = type === WORKFLOW.session;
  const stored: Stored = {
    history,
    ...(isSession ? await folded(events ?? []) : { checkpoints: [], state: null, workflowId }),
  };
  // Identities, sticky queues and stacks name the machine, which is nobody's business.
  const text = JSON.stringify(stored).replaceAll(`@${hostname()}`, '@host').replaceAll(process.cwd(), '');
  await writeFile(fileOf(name), `${text}\n`);
}

const fileOf = (name: string): URL => new URL(`${name}-${SUFFIX}.json`, DIRECTORY);

test.runIf(SUFFIX !== undefined).each(Object.entries(STORIES))('record %s', async (name, story) => {
  // A stored history is never replaced.
  expect(existsSync(fileOf(name))).toBe(false);
  const stage = await openStage(story.script);
  await stage.startWorker([story.agent(stage)], story.worker);
  const { message, mode = 'chat', start } = story;
  const session = await stage.sessions.start('story', { id: `story-${name}`, message, mode, ...start });
  await story.act(session, stage);
  await store(stage, name, session.id, story.run);
  for (const [other, id] of Object.entries((await story.also?.(session, stage)) ?? {}))
    await store(stage, other, id);
});

const files = storedFiles();

test('there is a stored history of each story', () => {
  for (const name of Object.keys(STORIES))
    expect(files.some((file) => file.startsWith(`${name}-`))).toBe(true);
});

test.each(files)('%s replays, and folds to what was stored', async (file) => {
  const stored = readStored(file);
  const { checkpoints, state } = stored;
  expect(await readAgain(stored)).toMatchObject({ checkpoints, state });
});

test.each(files)('%s reads the same with names in its updates that would be refused today', async (file) => {
  const stored = readStored(file);
  const given = stored.decoded.events.flatMap(
    ({ workflowExecutionUpdateAcceptedEventAttributes: event }) =>
      event?.acceptedRequest?.input?.args?.payloads ?? [],
  );
  for (const payload of given) {
    const value: unknown = defaultPayloadConverter.fromPayload(payload);
    payload.data = defaultPayloadConverter.toPayload(withUnknownNames(value)).data ?? null;
  }
  expect(given.length > 0).toBe(!/^(reads|tree-cancelled)-/.test(file));
  // Only a validator refuses them, and none is asked of what is on record.
  const { checkpoints, state } = stored;
  expect(await readAgain(stored)).toMatchObject({ checkpoints, state });
});

/** Replays a history and folds it. */
async function readAgain(
  stored: ReturnType<typeof readStored>,
): Promise<Pick<Stored, 'checkpoints' | 'state'>> {
  await replay(stored.decoded, stored.workflowId);
  return stored.state === null ? { checkpoints: [], state: null } : folded(stored.decoded.events);
}

/** A value with a name that no schema knows in each of its objects, but for a call's arguments, which are free. */
function withUnknownNames(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const fields = Object.entries(value).map(([name, item]: [string, unknown]) => [
    name,
    name === 'args' ? item : withUnknownNames(item),
  ]);
  return { ...Object.fromEntries(fields), USD: 2 };
}
