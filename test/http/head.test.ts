/** What is asked for its head alone leaves nothing behind. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { MemorySaver, Session } from '../../src/index.ts';
import { openWorld } from '../support/world.ts';
import { openApi } from './support/api.ts';

test('the head of a stream is answered as that of the stream, and the stream is let go', async () => {
  const world = await openWorld([{ text: 'Hello.' }]);
  await world.startWorker();
  const { id } = await world.begin();
  await world.until(world.sessions.get(id), 'idle');
  const api = await openApi(new MemorySaver());
  onTestFinished(() => api.close());
  const streams = vi.spyOn(Session.prototype, 'stream');
  const begun = vi.spyOn(globalThis, 'setInterval');
  const ended = vi.spyOn(globalThis, 'clearInterval');
  onTestFinished(() => void vi.restoreAllMocks());

  const { status, headers, body } = await fetch(`${api.url}/sessions/${id}/stream`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${api.token}` },
  });
  expect([status, headers.get('content-type'), body]).toEqual([200, 'text/event-stream', null]);
  const alive = begun.mock.results.filter((_, i) => begun.mock.calls[i]?.[1] === 15_000);
  expect(alive).toHaveLength(1);
  expect(ended).toHaveBeenCalledWith(alive[0]?.value);
  expect(streams).toHaveBeenCalledOnce();
  const parts = streams.mock.results[0]?.value as ReturnType<Session['stream']>;
  expect(await parts.next()).toEqual({ done: true, value: undefined });

  const missing = await fetch(`${api.url}/sessions/nobody/stream`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${api.token}` },
  });
  expect(missing.status).toBe(404);
});
