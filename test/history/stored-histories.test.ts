/**
 * Histories of sessions that were recorded once: they must replay on the present workflow, and fold to the state
 * that was stored with them. A new field of the state is fine; another value of a stored one is not.
 *
 * `PERDURE_RECORD=<suffix> npm test -- test/history/stored-histories` records the stories anew, in files of that
 * suffix beside those that exist.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { defaultFailureConverter, defaultPayloadConverter } from '@temporalio/common';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { foldHistory, type HistoryEvent } from '../../src/history/index.ts';
import type { SessionState } from '../../src/index.ts';
import { replay } from '../session/support/sound.ts';
import { openStage } from '../support/stage.ts';
import { STORIES } from './stories.ts';

const { History } = proto.temporal.api.history.v1;
const DIRECTORY = new URL('../histories/', import.meta.url);
const SUFFIX = process.env['PERDURE_RECORD'];
const CONVERTER = {
  payloadConverter: defaultPayloadConverter,
  failureConverter: defaultFailureConverter,
  payloadCodecs: [],
};

/** What is stored of a session. */
interface Stored {
  /** The history as protobuf's plain object: 64-bit numbers and enums as text, bytes in base64. */
  history: Record<string, unknown>;
  /** Event of each checkpoint, with the transcript's position there. */
  checkpoints: [eventId: number, count: number, digest: string][];
  /** The state at the end. */
  state: SessionState | null;
}

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
  await mkdir(DIRECTORY, { recursive: true });
  // Identities and sticky queues name the machine, which is nobody's business.
  await writeFile(file, `${JSON.stringify(stored).replaceAll(`@${hostname()}`, '@host')}\n`);
});

const files = existsSync(DIRECTORY)
  ? (await readdir(DIRECTORY)).filter((name) => name.endsWith('.json'))
  : [];

test('there is a stored history of each story', () => {
  for (const name of Object.keys(STORIES))
    expect(files.some((file) => file.startsWith(`${name}-`))).toBe(true);
});

test.each(files)('%s replays, and folds to what was stored', async (file) => {
  const stored = JSON.parse(await readFile(new URL(file, DIRECTORY), 'utf8')) as Stored;
  const history = History.fromObject(stored.history);
  await replay(history, stored.state?.sessionId ?? '');
  const { checkpoints, state } = await folded(history.events);
  expect(checkpoints).toEqual(stored.checkpoints);
  expect(state).toMatchObject(stored.state ?? {});
});
