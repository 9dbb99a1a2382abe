/** The record of a session's earlier runs is lost while a call waits for approval. */
import { expect, test } from 'vitest';
import { contentId } from '../../src/contract/thread.ts';
import { deleteRun, findExecution, untilGone } from '../../src/temporal/executions.ts';
import { decide } from '../support/decide.ts';
import { calls, openWorld } from '../support/world.ts';

test('the record of earlier runs is lost: the call is not made, and people see why', async () => {
  const world = await openWorld([{ text: 'Hello.' }, calls('refundAsked')]);
  const { client } = world;
  // Its memory ends with it.
  const first = await world.startWorkerProcess();
  const session = await world.begin('rolling');
  await world.until(session, 'idle');
  await session.send('Refund it.');
  await world.until(session, 'approval');
  await expect.poll(async () => (await session.snapshot()).past?.newest).toBeDefined();
  const { past } = await session.snapshot();
  await first.crash();
  const id = contentId(past?.newest.key ?? '', 0);
  const { runId = '' } = (await findExecution(client, id)) ?? {};
  await deleteRun(client, id, runId);
  await untilGone(client, id, runId);

  await world.startWorker();
  await decide(session, 'call_2_0', { decision: 'approve' });
  const call = await world.untilCall(session, 'call_2_0', 'stuck');
  expect(call.status).toMatchObject({
    reason: `The content ${id} of a checkpoint or step is missing or corrupt`,
  });
  expect(await world.control.refunds()).toEqual([]);
});
