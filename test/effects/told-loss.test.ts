/** A worker dies in a tool: what people can read of it, while no worker is there and after. */
import { expect, test, vi } from 'vitest';
import { callLines, callNews, inFlightLines } from '../../src/cli/calls.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import type { StreamPart, ToolCall } from '../../src/index.ts';
import { calls, openWorld } from '../support/world.ts';

test('reads answer at once from the history when the worker has died, and show and tail tell the story', async () => {
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin();
  await first.reached('request');
  const [inFlight = ''] = await inFlightLines(
    world.client,
    await world.client.workflow.getHandle(session.id).describe(),
    await session.snapshot(),
    Date.now(),
  );
  expect(inFlight).toMatch(/^ {2}tool call_1_0 {2}attempt 1, on worker \S+, last heard from \d+ s ago$/);

  const alive = { state: await session.state(), transcript: await session.transcript() };
  await first.crash();

  // The server still counts the dead worker among those that poll.
  const queries = vi.spyOn(world.client.workflowService, 'queryWorkflow');
  const { source, run } = await session.read();
  expect({ source, run }).toEqual({ source: 'history', run: 'running' });
  expect(queries).toHaveBeenCalledTimes(1);
  expect(await session.state()).toMatchObject({ phase: 'acting', messages: alive.state.messages });
  expect(await session.transcript()).toEqual(alive.transcript);
  expect((await session.calls()).items).toMatchObject([{ id: 'call_1_0', status: { kind: 'running' } }]);
  expect([await session.approvals(), await session.plan()]).toEqual([[], []]);
  expect((await session.budget()).spent.turns).toBe(1);
  const successor = await world.startWorkerProcess({ breakAt: ['before refund'] });
  await successor.reached('before refund');
  const parts: StreamPart[] = [];
  for await (const part of session.stream()) {
    parts.push(part);
    if (part.type === 'call') successor.release('before refund');
  }
  const seen = parts.flatMap((part) => (part.type === 'call' ? [part.call] : []));
  const news: string[] = [];
  let before: ToolCall | undefined;
  for (const call of seen) {
    news.push(...callNews(call, before));
    before = call;
  }
  expect(news[0]).toMatch(/^-> refund .* {2}\[call_1_0\]$/);
  expect(news.join('\n')).toMatch(/^ {2}call_1_0: dispatch 1: absent \(.+\)$/m);
  expect(news.join('\n')).toMatch(/^ {2}call_1_0: dispatch 2: /m);
  expect(news.at(-1)).toMatch(/^<- refund .* {2}\[call_1_0\]$/);

  const story = callLines((await session.calls()).items, new Terminal());
  expect(story).toMatch(
    /^ {4}dispatch 1: absent \(.+\), sent at \S+\n {4}dispatch 2: returned, sent at \S+$/m,
  );
});
