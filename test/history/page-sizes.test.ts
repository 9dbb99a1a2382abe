/** A page that a server or a client cannot carry is asked for in smaller pieces; what else fails is the caller's. */
import { expect, test, vi } from 'vitest';
import { type HistoryEvent, readEvents } from '../../src/temporal/index.ts';
import { rejection } from '../support/rejection.ts';
import { openWorld, type World } from '../support/world.ts';

async function session(): Promise<{ world: World; workflowId: string }> {
  const world = await openWorld([{ text: 'Hello.' }]);
  await world.startWorker();
  const { id } = await world.begin();
  await world.until(world.sessions.get(id), 'idle');
  return { world, workflowId: id };
}

/** Reads a history whose first page fails with a gRPC code, by chance what a server that is short of time answers. */
async function readAfter({ world, workflowId }: Awaited<ReturnType<typeof session>>, code: number) {
  const asked = vi.spyOn(world.client.workflowService, 'getWorkflowExecutionHistory');
  asked.mockRejectedValueOnce(Object.assign(new Error(`${code}`), { code }));
  const events: HistoryEvent[] = [];
  try {
    for await (const event of readEvents(world.client, { workflowId })) events.push(event);
    return { events, sizes: asked.mock.calls.map(([request]) => request.maximumPageSize) };
  } finally {
    asked.mockRestore();
  }
}

test.each([
  ['reset by a server whose deadline passed first', 1],
  ['too slow', 4],
  ['too large', 8],
])('a page that is %s is read in smaller ones', async (_, code) => {
  const { events, sizes } = await readAfter(await session(), code);
  expect(sizes.slice(0, 2)).toEqual([1_000, 60]);
  expect(events.map(({ eventId }) => Number(eventId))).toEqual(events.map((_event, at) => at + 1));
  expect(events.length).toBeGreaterThan(5);
});

test('a page that is not there is not asked for again', async () => {
  expect(await rejection(readAfter(await session(), 5))).toMatchObject({ code: 5 });
});
