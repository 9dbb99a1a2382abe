/** What a person reads of a session in Temporal's own UI: its summary, those of its activities and timers, its details. */

import { defaultPayloadConverter } from '@temporalio/common';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { activityKind } from '../../src/contract/names.ts';
import { defineAgent, defineTool, type PendingCall, type Session } from '../../src/index.ts';
import { commandsFor } from '../../src/session/commands.ts';
import { decide, resolve } from '../support/decide.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** What each activity and timer of a history is called, in their order. */
async function summaries(stage: Stage, session: Session): Promise<string[]> {
  const { history } = await expectSound(stage, session);
  return history.events.flatMap((event) => {
    const on =
      activityKind(event.activityTaskScheduledEventAttributes?.activityType?.name) ??
      (event.timerStartedEventAttributes ? 'timer' : undefined);
    const payload = event.userMetadata?.summary;
    if (on === undefined) return [];
    return [payload ? `${on}: ${defaultPayloadConverter.fromPayload<string>(payload)}` : on];
  });
}

async function details(stage: Stage, session: Session): Promise<string> {
  const handle = stage.client.workflow.getHandle(session.id);
  const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
  return currentDetails;
}

function nextOf(call: PendingCall | undefined): string {
  const commands = call === undefined ? [] : commandsFor(call.next);
  return `Next: ${commands.map((line) => `\`${line}\``).join(' or ')}`;
}

test('a session, its activities and timers say what they are for; the details say what is waited for, and what to type', async () => {
  const stage = await openStage(({ assistantCount }) => {
    if (assistantCount > 1) return { fault: 'status', status: 400, body: { error: { message: 'no' } } };
    const names = assistantCount === 0 ? ['look', 'peek'] : ['pay'];
    return { toolCalls: names.map((name) => ({ name, args: {} })) };
  });
  const inputSchema = z.object({});
  let paying = 0;
  const tools = {
    look: defineTool({ inputSchema, effect: 'read', execute: () => 'seen' }),
    peek: defineTool({ inputSchema, effect: 'read', execute: () => 'seen' }),
    pay: defineTool({
      inputSchema,
      needsApproval: true,
      approval: { expires: '1h' },
      settle: '1ms',
      execute: (): string => {
        paying += 1;
        throw new Error('the connection was lost');
      },
      verify: () => (paying === 1 ? { outcome: 'absent' } : { outcome: 'unknown' }),
    }),
  };
  const model = { model: stage.provider('m'), price: { inputPerMillion: 1, outputPerMillion: 1 } };
  await stage.startWorker([defineAgent({ name: 'payer', model, instructions: 'Pay.', tools })]);
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
  const { id } = session;
  const description = await stage.client.workflow.getHandle(id).describe();
  expect(await description.staticSummary()).toBe(`payer · ${id}`);

  await untilPhase(session, 'approval');
  const { spent } = await session.budget();
  expect(spent.usd).toBeGreaterThanOrEqual(0.0001);
  const [first] = await session.approvals();
  expect(nextOf(first)).toMatch(
    /^Next: `perdure approve \S+ call_2_0 --digest [0-9a-f]{12}` or `perdure reject /,
  );
  expect(await details(stage, session)).toBe(
    `**payer** is **approval** after 2 turns, 3 tool calls and $${spent.usd.toFixed(4)}.\n\n` +
      `pay call_2_0: approval. ${nextOf(first)}`,
  );
  await decide(session, 'call_2_0', { decision: 'approve' }, { by: 'ada' });
  const { pending } = await untilPhase(session, 'unknown_effect');
  expect(pending[0]?.next).toMatchObject({ action: 'resolve', callId: 'call_2_0', dispatchNo: 2 });
  expect(await details(stage, session)).toContain(`pay call_2_0: unknown. ${nextOf(pending[0])}`);
  await resolve(session, 'call_2_0', { outcome: 'landed', output: 'paid' });
  const { wait } = await untilPhase(session, 'waiting');
  const shown = await details(stage, session);
  expect(shown).toContain('**payer** is **waiting** after 2 turns');
  expect(shown).toContain(`Waits: provider_rejected: ${wait?.message}\n\nNext: \`perdure resume ${id}\``);

  expect(await summaries(stage, session)).toEqual([
    'describe: describe payer',
    'model: turn 1',
    'model: look call_1_0, peek call_1_1; turn 2',
    'timer: approval of pay call_2_0 expires',
    'tool: pay call_2_0',
    'timer: pay call_2_0 settles',
    'verify: verify pay call_2_0',
    'tool: pay call_2_0, dispatch 2',
    'timer: pay call_2_0 settles',
    'verify: verify pay call_2_0',
    'model: turn 3',
  ]);
});

test('a session records no call stacks, for its details say what it waits for', async () => {
  const stage = await openStage(() => ({ text: 'done' }));
  const stacked = defineAgent({
    name: 'stacked',
    model: stage.provider('m'),
    instructions: 'Wait.',
    tools: {},
  });
  // A worker that shares the thread of the tests would keep none anyway.
  await stage.startWorker([stacked], { debugMode: false });
  const session = await stage.sessions.start('stacked', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'idle');
  const text = await stage.client.workflow.getHandle(session.id).query<string>('__stack_trace');
  expect(text).toBe('');
});
