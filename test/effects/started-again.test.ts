/** A session that is started again under an id is another one: nothing that it does is answered from before. */
import { expect, test } from 'vitest';
import { calls, openWorld } from '../support/world.ts';

test('a session that was deleted and started again under its id has new keys: the same refund is made again', async () => {
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }]);
  await world.startWorker();
  const refund = async (id?: string): Promise<{ id: string; key: string | undefined }> => {
    const session = await world.startSession('effects', {
      message: 'Please.',
      ...(id === undefined ? {} : { id }),
    });
    await world.until(session, 'idle');
    const state = await world.check(session);
    expect(state.calls).toMatchObject([{ status: { kind: 'completed' }, replayOf: null }]);
    return { id: session.id, key: state.calls[0]?.idempotencyKey };
  };
  const first = await refund();
  const { namespace } = world;
  const workflowExecution = { workflowId: first.id };
  await world.client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
  await expect
    .poll(
      () =>
        world.client.workflow
          .getHandle(first.id)
          .describe()
          .then(
            () => 'there',
            (error: unknown) => (error as Error).name,
          ),
      {
        timeout: 60_000,
      },
    )
    .toBe('WorkflowNotFoundError');

  // The service answers a key that it knows from its record, and makes no other refund.
  const second = await refund(first.id);
  expect(second.key).not.toBe(first.key);
  expect(await world.control.refunds()).toMatchObject([{ key: first.key }, { key: second.key }]);
});
