/** Errors that come when something happens between two steps of an operation: each is one that the document promises. */
import { Client } from '@temporalio/client';
import { expect, onTestFinished, test, vi } from 'vitest';
import { threadWorkflowId } from '../../src/contract/thread.ts';
import { type Checkpoint, TemporalSaver } from '../../src/index.ts';
import { useThreads } from '../saver/support/threads.ts';
import { openWorld } from '../support/world.ts';
import { openApi, type ServedApi } from './support/api.ts';

const threads = useThreads();

async function open(saver: TemporalSaver): Promise<ServedApi> {
  const api = await openApi(saver);
  onTestFinished(() => api.close());
  return api;
}

test('a thread whose worker is away is no session to go on from, as far as anybody can tell', async () => {
  const id = threads.id();
  const taskQueue = 'of-nobody';
  const input = { threadId: id, epoch: 0, segments: [], entries: [], garbage: { runs: [], contents: [] } };
  await threads.client.workflow.start('checkpointThread', {
    workflowId: threadWorkflowId(id),
    taskQueue,
    args: [input],
  });
  const api = await open(new TemporalSaver(threads.client, { taskQueue, timeoutMs: 500 }));
  const json = { checkpointId: 'some', by: 'ada', reason: 'to see', edits: { plan: [] } };
  expect(await api.call(`POST /sessions/${id}/fork`, { json })).toMatchObject({
    status: 503,
    code: 'NO_WORKER',
  });
});

test('a thread that is ended while it is deleted', async () => {
  await threads.startWorker();
  const id = threads.id();
  const saver = threads.newSaver();
  await saver.put(id, {});
  const api = await open(saver);
  const { workflowService, workflow } = threads.client;
  const ask = workflowService.describeWorkflowExecution.bind(workflowService) as unknown as (
    request: object,
  ) => Promise<never>;
  const asked = vi.spyOn(workflowService, 'describeWorkflowExecution');
  onTestFinished(() => asked.mockRestore());
  asked.mockImplementation(async (request: { execution?: { workflowId?: string | null } | null }) => {
    const answer = await ask(request);
    const { workflowId } = request.execution ?? {};
    if (workflowId === threadWorkflowId(id)) await workflow.getHandle(workflowId).terminate();
    return answer;
  });
  expect(await api.call(`DELETE /threads/${id}`)).toMatchObject({ status: 409, code: 'CONFLICT' });
});

test('a session that is deleted while it is edited', async () => {
  const world = await openWorld([{ text: 'Hello.' }]);
  await world.startWorker();
  const { id } = await world.begin();
  await world.until(world.sessions.get(id), 'idle');
  const { connection, options } = world.client;
  const late = new Client({
    connection,
    namespace: options.namespace,
    interceptors: {
      workflow: [
        {
          startUpdate: async (input, next) => {
            await new TemporalSaver(world.client).delete(id, { end: true });
            return next(input);
          },
        },
      ],
    },
  });
  const api = await open(new TemporalSaver(late));
  const { state } = (await api.call<Checkpoint>(`GET /threads/${id}/latest`)).body;
  const json = { state: { ...state, plan: [] }, metadata: { by: 'ada', reason: 'to see' } };
  expect(await api.call(`PUT /threads/${id}/checkpoints`, { json })).toMatchObject({
    status: 404,
    code: 'SESSION_NOT_FOUND',
  });
});
