/** An answer of a session is matched with a history that may have gone on: whichever checkpoint is found has its state. */
import { tsToMs } from '@temporalio/common/lib/time.js';
import { expect, test } from 'vitest';
import { canonicalJson, type JsonValue } from '../../src/contract/json.ts';
import { foldHistory } from '../../src/history/index.ts';
import { findTask } from '../../src/saver/ask-session.ts';
import { CONVERTER, readStored, storedFiles } from '../history/stored.ts';

interface Task {
  eventId: number;
  at: string;
  state: string;
}

test.each(storedFiles())('%s: any task is found as the last with its state', async (file) => {
  const { events } = readStored(file).decoded;
  const tasks: Task[] = [];
  await foldHistory([events], CONVERTER, {
    onTask: ({ eventId, at, state }) =>
      void tasks.push({ eventId, at, state: canonicalJson(state as unknown as JsonValue) }),
  });
  const byEvent = new Map(events.map((event) => [Number(event.eventId), event]));
  const newestFirst = events.toReversed();
  // In pages of seven: a task and the one before it may lie in two.
  const pages = Array.from({ length: Math.ceil(events.length / 7) }, (_, i) =>
    newestFirst.slice(i * 7, i * 7 + 7),
  );
  let moved = 0;
  for (const [i, task] of tasks.entries()) {
    const started = byEvent.get(
      Number(byEvent.get(task.eventId)?.workflowTaskCompletedEventAttributes?.startedEventId),
    );
    const answer = { startedEvent: Number(started?.eventId), at: tsToMs(started?.eventTime) };
    const found = await findTask(toAsync(pages), answer);
    const place = tasks.findIndex(({ eventId }) => eventId === found?.eventId);
    expect(place).toBeGreaterThanOrEqual(i);
    expect(tasks[place]?.state).toBe(task.state);
    expect(found).toEqual({
      eventId: tasks[place]?.eventId,
      at: Date.parse(tasks[place]?.at ?? ''),
      previous: tasks[place - 1]?.eventId ?? null,
    });
    if (place > i) moved += 1;
    // A time of another attempt, or the number of an event that started no task that has completed.
    expect(await findTask(toAsync(pages), { ...answer, at: answer.at + 1 })).toBeNull();
    expect(await findTask(toAsync(pages), { ...answer, startedEvent: answer.startedEvent + 1 })).toBeNull();
  }
  // Most tasks bring something.
  expect(moved).toBeLessThan(tasks.length);
});

async function* toAsync<T>(pages: readonly T[]): AsyncGenerator<T> {
  yield* pages;
}
