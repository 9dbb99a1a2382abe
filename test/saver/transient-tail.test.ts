/** Temporal shows from 1.31 on, at the end of a history, the events of a workflow task that may never be on record. */
import proto from '@temporalio/proto';
import { expect, test, vi } from 'vitest';
import { type Session, TemporalSaver } from '../../src/index.ts';
import { untilPhase } from '../support/stage.ts';
import { idle, openSessionStage, type SessionStage } from './support/session-stage.ts';

const { HistoryEvent } = proto.temporal.api.history.v1;

/** Does something while reads that go forwards end with a task that is under way for an update which is refused. */
async function whileUnderWay<T>({ client }: SessionStage, act: () => Promise<T>): Promise<T> {
  const service = client.workflowService;
  const read = service.getWorkflowExecutionHistory.bind(service);
  const spied = vi.spyOn(service, 'getWorkflowExecutionHistory');
  spied.mockImplementation(async (request) => {
    const page = await read(request);
    const last = page.history?.events?.at(-1);
    if (last !== undefined && page.nextPageToken.length === 0) {
      const { eventTime = null } = last;
      const shown = ['EVENT_TYPE_WORKFLOW_TASK_SCHEDULED', 'EVENT_TYPE_WORKFLOW_TASK_STARTED'];
      for (const [at, eventType] of shown.entries()) {
        const event = HistoryEvent.fromObject({ eventId: Number(last.eventId) + at + 1, eventType });
        page.history?.events?.push(Object.assign(event, { eventTime }));
      }
    }
    return page;
  });
  try {
    return await act();
  } finally {
    expect(spied).toHaveBeenCalled();
    spied.mockRestore();
  }
}

test.each<[what: string, act: (session: Session) => Promise<void>]>([
  [
    'a pause',
    async (session) => {
      await session.pause({ reason: 'lunch' });
      await untilPhase(session, 'paused');
    },
  ],
  [
    'a message',
    async (session) => {
      await session.send('Look again.');
      await untilPhase(session, 'idle');
    },
  ],
])('%s is not passed over that took the place of a task which was only shown', async (_, act) => {
  const stage = await openSessionStage([{ text: 'Seen.' }, { text: 'Seen again.' }]);
  const session = await idle(stage);
  const saver = new TemporalSaver(stage.client);
  const first = await whileUnderWay(stage, () => saver.get(session.id));
  expect(first?.state).toEqual(await session.snapshot());
  await act(session);
  expect(await saver.get(session.id)).toMatchObject({ state: await session.snapshot() });
  expect(await saver.get(session.id)).toEqual(await new TemporalSaver(stage.client).get(session.id));
});
