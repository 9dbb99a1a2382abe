/** A query that is answered from the events of a workflow task that another worker has taken and loses. */
import type { WorkflowHandle } from '@temporalio/client';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { ASK_AGAIN } from '../../src/contract/failure.ts';
import type { Phase, Session } from '../../src/index.ts';
import { openWorld, type World } from '../support/world.ts';
import { replay } from './support/sound.ts';

const { TaskQueueKind } = proto.temporal.api.enums.v1;

test.each<{ meanwhile: string; before: Phase; signals: string[]; after: Phase }>([
  { meanwhile: 'nothing', before: 'idle', signals: [], after: 'idle' },
  { meanwhile: 'a signal that changes what is done', before: 'idle', signals: ['pause'], after: 'paused' },
  { meanwhile: 'nothing to a session at rest', before: 'paused', signals: [], after: 'paused' },
])(
  'meanwhile comes $meanwhile: the session goes on as a replay would',
  async ({ before, signals, after }) => {
    const world = await openWorld([{ text: 'Hello.' }, { text: 'Done.' }, { text: 'Done.' }]);
    const session = await queriedAhead(world, before);
    const handle = world.client.workflow.getHandle(session.id);
    for (const signal of signals) await handle.signal(signal);
    await world.until(session, ({ phase, messages, queued }) => phase === after && messages + queued > 2);
    const state = await world.check(session);
    expect(state.transcript.length + state.inbox.length).toBe(after === 'paused' ? 3 : 4);
    await replay(await handle.fetchHistory(), session.id);
  },
);

/**
 * A session that was asked while another worker had its task, in a worker that is given the lost task. It has answered
 * ahead of its history, unless it has nothing to do: then it answers when the task has come to its end.
 */
async function queriedAhead(world: World, phase: Phase): Promise<Session> {
  for (;;) {
    const worker = await world.startWorkerProcess();
    const session = await world.startSession('effects', { message: 'Please.', workflowTaskTimeout: '5s' });
    await world.until(session, 'idle');
    if (phase === 'paused') await session.pause();
    await world.until(session, phase);
    const handle = world.client.workflow.getHandle(session.id);
    const last = async () => (await handle.fetchHistory()).events?.at(-1);
    const name = await stickyQueueOf(world, session);
    await worker.crash();
    // Its successor knows nothing of it.
    const next = await world.startWorker({ journal: false });
    const take = () => takeAndLose(world, name);

    const query = take();
    const asked = ask(handle);
    expect((await query).query?.queryType).toBe('state');
    // The server waits a second for its answer before it asks the next worker.
    const task = take();
    await handle.signal('send', { text: 'Do this.' });
    const { startedEventId } = await Promise.race([task, asked.then(() => ({ startedEventId: null }))]);
    await asked;
    const isAhead = phase === 'paused' || String((await last())?.eventId) === String(startedEventId);
    if (startedEventId !== null && isAhead) return session;
    await next.stop();
  }
}

/** Asks a worker and nobody else: a client's read would turn to the history when no answer comes. */
async function ask(handle: WorkflowHandle): Promise<unknown> {
  for (;;) {
    try {
      return await handle.query('state');
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes(ASK_AGAIN)) throw error;
    }
  }
}

/** Takes what comes for a worker that is gone, and is as silent. */
async function takeAndLose({ client, namespace, taskQueue }: World, name: string) {
  return client.connection.withDeadline(Date.now() + 60_000, () =>
    client.workflowService.pollWorkflowTaskQueue({
      namespace,
      taskQueue: { name, kind: TaskQueueKind.TASK_QUEUE_KIND_STICKY, normalName: taskQueue },
    }),
  );
}

async function stickyQueueOf({ client }: World, session: Session): Promise<string> {
  const { events } = await client.workflow.getHandle(session.id).fetchHistory();
  const task = events?.findLast(
    ({ workflowTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.taskQueue?.kind === TaskQueueKind.TASK_QUEUE_KIND_STICKY,
  );
  return task?.workflowTaskScheduledEventAttributes?.taskQueue?.name ?? expect.fail('no sticky queue');
}
