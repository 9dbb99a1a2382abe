/** Sessions that a Temporal schedule starts. */
import { Client, Connection } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { defineAgent, scheduleSessions } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, until } from '../support/stage.ts';

const never = { calendars: [{ year: 2100 }] };

test('a schedule starts a session each time, which ends with its answer, and not while the last one runs', async () => {
  let answer = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const stage = await openStage(async ({ lastUserText }) => {
    await asked;
    return { text: `heard ${lastUserText}` };
  });
  const agent = defineAgent({
    name: 'echo',
    model: stage.provider('m'),
    instructions: 'Say what you heard.',
  });
  await stage.startWorker([agent]);
  const id = stage.id('report');
  const options = {
    id,
    message: 'good morning',
    spec: { intervals: [{ every: '1s' as const }] },
    taskQueue: stage.taskQueue,
  };
  const schedule = await scheduleSessions(stage.client, agent, options);
  onTestFinished(() => schedule.delete());
  expect(await rejection(scheduleSessions(stage.client, agent, options))).toMatchObject({
    code: 'CONFLICT',
    message: `id: schedule ${id} exists. Delete it first, or choose another id`,
  });

  // The first session still waits for its model.
  const skipped = async (): Promise<number> => (await schedule.describe()).info.numActionsSkippedOverlap;
  await expect.poll(skipped).toBeGreaterThan(0);
  await schedule.pause();
  const { recentActions } = (await schedule.describe()).info;
  expect(recentActions).toHaveLength(1);
  const first = recentActions[0]?.action.workflow.workflowId ?? '';
  expect(first).toMatch(new RegExp(`^${id}-\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$`));
  answer();
  const session = stage.sessions.get(first);
  expect((await until(session, ({ phase }) => phase === 'closed')).lastText).toBe('heard good morning');
});

test.each<[name: string, options: object, message: string]>([
  ['no message', { message: undefined }, 'message: write the first message of each session'],
  ['a chat, which never ends', { mode: 'chat' }, 'mode: a chat does not end by itself'],
  ['an id that leaves no room for the time', { id: 'i'.repeat(190) }, 'id: use up to 179 characters'],
  ['an option that nobody knows', { bugdet: {} }, 'bugdet: is unknown'],
])('%s is refused before anything is sent', async (_, options, message) => {
  const client = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
  const error = await rejection(
    scheduleSessions(client, 'echo', { id: 'report', message: 'x', spec: never, ...options }),
  );
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
});
