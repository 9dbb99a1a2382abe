import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import {
  type CallDetail,
  defineAgent,
  defineTool,
  type Inbox,
  Sessions,
  TemporalSaver,
} from '../../src/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { openApi } from './support/api.ts';

test('the inbox shows what waits in all sessions, what expires first, and what each answer would do', async () => {
  const stage = await openStage(({ lastUserText, stepInTurn }) =>
    stepInTurn > 0 ? { text: 'done' } : { toolCalls: [{ name: lastUserText, args: { cents: 5 } }] },
  );
  const { taskQueue, client, sessions } = stage;
  const inputSchema = z.object({ cents: z.number() });
  const slow = { needsApproval: true, approval: { expires: '2h' } } as const;
  const tools = {
    later: defineTool({ inputSchema, ...slow, execute: () => 'done' }),
    soon: defineTool({ inputSchema, ...slow, approval: { expires: '1h' }, execute: () => 'done' }),
    lost: defineTool({
      inputSchema,
      settle: '1ms',
      execute: () => {
        throw new Error('the connection was lost');
      },
      verify: () => ({ outcome: 'unknown', reason: 'the log is gone' }),
    }),
  };
  const options = { model: stage.provider('m'), instructions: 'Call the tool that the user names.' };
  const worker = await stage.startWorker([defineAgent({ name: 'desk', ...options, tools })]);
  const api = await openApi(new TemporalSaver(client, { taskQueue }), { taskQueue });
  onTestFinished(api.close);
  const tenant = stage.id('tenant');
  const begin = async (
    message: string,
    phase: Parameters<typeof untilPhase>[1],
    turns = 9,
  ): Promise<string> => {
    const session = await sessions.start('desk', { message, context: { tenant }, budget: { turns } });
    await untilPhase(session, phase);
    return session.id;
  };
  const later = await begin('later', 'approval');
  const soon = await begin('soon', 'approval');
  const lost = await begin('lost', 'unknown_effect');
  const poor = await begin('poor', 'waiting', 0);
  const read = (): Promise<Inbox> => sessions.inbox({ tenant });
  await expect.poll(async () => (await read()).items.length).toBe(4);

  const { items, waiting } = await read();
  expect(waiting).toBe(4);
  expect(items.map(({ sessionId, kind }) => [sessionId, kind])).toEqual([
    [soon, 'approval'],
    [later, 'approval'],
    [lost, 'unknown'],
    [poor, 'budget'],
  ]);
  const [first, , unknown, budget] = items;
  expect(first).toMatchObject({
    agent: 'desk',
    tenant,
    since: expect.stringMatching(/^2.*Z$/),
    until: expect.stringMatching(/^2.*Z$/),
    call: { tool: 'soon', args: { cents: 5 }, effect: 'mutate' },
  });
  expect(first?.answers).toContainEqual({
    answer: 'approve',
    does: 'The call runs with these arguments.',
    command: `perdure approve ${soon} call_1_0 --digest ${first?.call?.argsDigest.slice(0, 12)}`,
  });
  expect(unknown).toMatchObject({ reason: expect.stringContaining('the log is gone') });
  expect(unknown?.answers.map(({ answer }) => answer)).toEqual(['landed', 'absent', 'failed']);
  expect(budget?.answers.map(({ answer }) => answer)).toEqual(['raise', 'finish']);

  const served = await api.call<Inbox>(`GET /inbox?tenant=${tenant}`);
  expect(served.body).toEqual(await read());
  const one = await api.call<Inbox>(`GET /inbox?tenant=${tenant}&limit=1`);
  expect(one.body).toMatchObject({ waiting: 4, read: 1 });
  const detail = await api.call<CallDetail>(`GET /sessions/${lost}/calls/call_1_0`);
  expect(detail.body).toMatchObject({
    tool: { name: 'lost', verify: true, inputSchema: { properties: { cents: { type: 'number' } } } },
    pending: { callId: 'call_1_0' },
    call: { dispatches: [{ no: 1, outcome: 'unknown' }] },
    asked: { message: 'lost' },
  });
  const none = await api.call(`GET /sessions/${lost}/calls/call_9_9`);
  expect(none).toMatchObject({ status: 404, code: 'UNKNOWN_CALL' });

  // Without a worker it is read from the histories.
  const before = await read();
  await worker.stop();
  expect((await new Sessions(client, { taskQueue }).inbox({ tenant })).items).toEqual(before.items);
});
