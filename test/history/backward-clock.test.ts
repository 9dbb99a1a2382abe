/** A server's clock steps back in the middle of a session: the fold has the times that the workflow has. */
import { readFile } from 'node:fs/promises';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { Worker } from '@temporalio/worker';
import { expect, test } from 'vitest';
import { foldHistory } from '../../src/history/index.ts';
import type { Message } from '../../src/index.ts';
import { type HistoryEvent, readEvents } from '../../src/temporal/index.ts';
import { workflowBundle } from '../../src/worker/index.ts';
import { calls, openWorld } from '../support/world.ts';

const HOUR_S = 3_600;

test('tasks that start an hour before the ones before them happen at the time of those', async () => {
  const order = calls(['order', { id: '1001' }]);
  const world = await openWorld([order, order, { text: 'Found.' }]);
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');
  const events: HistoryEvent[] = [];
  for await (const event of readEvents(world.client, { workflowId: session.id })) events.push(event);
  // From the fourth task on, the server's clock is an hour behind.
  const starts = events.filter(({ workflowTaskStartedEventAttributes: task }) => task);
  const jump = Number(starts[3]?.eventId);
  const shifted = events.map((event): HistoryEvent => {
    const { seconds, nanos } = event.eventTime ?? {};
    if (Number(event.eventId) < jump || !seconds) return event;
    return { ...event, eventTime: { seconds: seconds.subtract(HOUR_S), nanos: nanos ?? 0 } };
  });

  const replayed: Message[] = [];
  await Worker.runReplayHistory(
    {
      workflowBundle: { code: await talkativeBundle() },
      sinks: {
        perdure: {
          remember: {
            fn: (_, piece: { messages: Message[] }) => void replayed.push(...piece.messages),
            callDuringReplay: true,
          },
        },
      },
    },
    { events: shifted },
    session.id,
  );
  const { state } = await foldHistory([shifted], world.client.options);
  expect(replayed.length).toBeGreaterThan(3);
  expect(state?.transcript.slice(0, replayed.length)).toEqual(replayed);
  const times = state?.transcript.map((message) => Date.parse(message.created_at)) ?? [];
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(times.at(-1)).toBe(tsToMs(starts[2]?.eventTime));
});

/** The workflow code, which here tells the worker its messages in a replay as well. */
async function talkativeBundle(): Promise<string> {
  const { codePath } = await workflowBundle();
  const code = await readFile(codePath, 'utf8');
  const [check = ''] = /(?<=function isReplaying\(\) \{\s*return )[^;]+/.exec(code) ?? [];
  expect(check).toContain('isReplaying');
  return code.replace(check, 'false');
}
