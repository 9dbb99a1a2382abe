/**
 * Histories of sessions that were recorded once: they must replay on the present workflow, and fold to the state
 * that was stored with them. A new field of the state is fine; another value of a stored one is not.
 *
 * `PERDURE_RECORD=<suffix> npm test -- test/history/stored-histories` records the stories anew, in files of that
 * suffix beside those that exist.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { foldHistory, type HistoryEvent } from '../../src/history/index.ts';
import { replay } from '../session/support/sound.ts';
import { openStage } from '../support/stage.ts';
import { CONVERTER, DIRECTORY, readStored, type Stored, storedFiles } from './stored.ts';
import { STORIES } from './stories.ts';

const { History } = proto.temporal.api.history.v1;
const SUFFIX = process.env['PERDURE_RECORD'];

async function folded(events: readonly HistoryEvent[]): Promise<Omit<Stored, 'history'>> {
  const checkpoints: Stored['checkpoints'] = [];
  const { state } = await foldHistory([events], CONVERTER, {
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
  const { events } = await stage.client.workflow.getHandle(session.id).fetchHistory();
  const history = History.toObject(History.fromObject({ events: events ?? [] }), {
    enums: String,
    longs: String,
    bytes: String,
  });
  const stored: Stored = { history, ...(await folded(events ?? [])) };
  // Identities and sticky queues name the machine, which is nobody's business.
  await writeFile(file, `${JSON.stringify(stored).replaceAll(`@${hostname()}`, '@host')}\n`);
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
