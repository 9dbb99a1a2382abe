/** A worker dies during a mutation that can be verified: the effect happens once, whenever it died. */
import { expect, test } from 'vitest';
import type { Session } from '../../src/index.ts';
import { calls, openWorld, PEN, type World } from '../support/world.ts';

const script = [calls('refund'), { text: 'Refunded.' }];

/** How it ended: one row with the call's key, the transcript whole, the fold true. Resolves with the outcomes of the dispatches. */
async function onceRefunded(world: World, session: Session): Promise<(string | null)[]> {
  await world.until(session, 'idle');
  const state = await world.check(session);
  const rows = await world.control.refunds();
  const [call] = state.calls;
  expect(rows).toMatchObject([{ args: PEN, key: call?.idempotencyKey }]);
  expect(call).toMatchObject({ status: { kind: 'completed' }, result: { content: { id: rows[0]?.id } } });
  expect(state.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  return call?.dispatches.map(({ outcome }) => outcome) ?? [];
}

test('killed before the call was dispatched, while the model answered: the model is asked again, and it is made once', async () => {
  const world = await openWorld(script);
  const first = await world.startWorkerProcess({ breakAt: ['after model'] });
  const session = await world.begin();
  await first.reached('after model');
  await first.crash();
  await world.startWorker();
  expect(await onceRefunded(world, session)).toEqual(['returned']);
  // Three requests: the first reply was never recorded.
  expect(world.model.requests.map(({ request }) => request.assistantCount)).toEqual([0, 0, 1]);
});

test('killed when it had the call and had not run the tool: verified absent, dispatched again', async () => {
  const world = await openWorld(script);
  const first = await world.startWorkerProcess({ breakAt: ['before refund'] });
  const session = await world.begin();
  await first.reached('before refund');
  await first.crash();
  await world.startWorker();
  expect(await onceRefunded(world, session)).toEqual(['absent', 'returned']);
});

test('killed in the tool, before its request: verified absent, dispatched again with the same key', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin();
  await first.reached('request');
  await first.crash();
  await world.startWorker();
  expect(await onceRefunded(world, session)).toEqual(['absent', 'returned']);
});

test('killed after the effect, with the reply still to come: verified landed, its output is the result', async () => {
  // The service ignores keys: a second request would be a second refund.
  const world = await openWorld(script, { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  const first = await world.startWorkerProcess();
  const session = await world.begin();
  await world.control.held();
  await first.crash();
  await world.startWorker();
  expect(await onceRefunded(world, session)).toEqual(['landed']);
});

test('killed when the tool had returned and nothing was recorded: verified landed', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after refund'] });
  const session = await world.begin();
  const { detail } = await first.reached('after refund');
  expect(JSON.parse(detail)).toMatchObject({ kind: 'output', output: PEN });
  await first.crash();
  await world.startWorker();
  expect(await onceRefunded(world, session)).toEqual(['landed']);
});

test('killed when its result was on the wire and had not arrived: verified landed', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const wire = await world.openWire();
  const first = await world.startWorkerProcess({ breakAt: ['after refund'], connection: wire.connection });
  const session = await world.begin();
  await first.reached('after refund');
  wire.hold();
  first.release('after refund');
  // The result has left the worker, and the server will never see it.
  await wire.held('"kind":"output"');
  await first.crash();
  await wire.close();
  await world.startWorker();
  expect(await onceRefunded(world, session)).toEqual(['landed']);
});

test('killed as soon as its result was sent: recorded or not, it happened once', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after refund'] });
  const session = await world.begin();
  await first.reached('after refund');
  first.release('after refund');
  await first.crash();
  await world.startWorker();
  expect([['returned'], ['landed']]).toContainEqual(await onceRefunded(world, session));
});
