/** Faults while a session looks up whether an earlier run has taken a message. */
import { expect, test } from 'vitest';
import { SIGNAL } from '../../src/contract/names.ts';
import { KEPT_MESSAGE_IDS } from '../../src/contract/past.ts';
import { rolling } from '../support/rolling-agents.ts';
import { openWorld } from '../support/world.ts';

const LOOK = 'before takenIds';

test('a worker that is killed while it looks up the id of a message: it is looked up again, and taken once', async () => {
  const world = await openWorld(() => ({ text: 'Noted.' }), {
    agents: [rolling],
    module: new URL('../support/rolling-agents.ts', import.meta.url),
  });
  const session = await world.begin('rolling');
  const handle = world.client.workflow.getHandle(session.id);
  const said = KEPT_MESSAGE_IDS + 5;
  for (let n = 0; n < said; n++) await handle.signal(SIGNAL.send, { id: `m${n}`, text: 'x' });
  const worker = await world.startWorkerProcess({ breakAt: [LOOK] });
  await expect
    .poll(async () => (await session.snapshot()).past?.taken === undefined, { timeout: 60_000 })
    .toBe(false);
  const { messages, turn } = await world.until(session, 'idle');
  await handle.signal(SIGNAL.send, { id: 'm0', text: 'x' });
  await worker.reached(LOOK);
  await worker.crash();
  await world.startWorkerProcess();

  await handle.signal(SIGNAL.send, { id: 'new', text: 'x' });
  await expect.poll(async () => (await session.state()).turn, { timeout: 60_000 }).toBe(turn + 1);
  // The new message, and its answer.
  expect(await world.until(session, 'idle')).toMatchObject({ messages: messages + 2, queued: 0 });
});
