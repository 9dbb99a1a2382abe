/** Ids of Perdure's own workflows are reserved, and only the record of the right workflow answers a global call. */

import { expect, test } from 'vitest';
import { baseKey } from '../../src/contract/keys.ts';
import { TemporalSaver } from '../../src/index.ts';
import { SIGNAL, WORKFLOW } from '../../src/workflows/index.ts';
import { openApi } from '../http/support/api.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { herald } from '../support/herald.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';

async function openHerald(): Promise<{ stage: Stage; announced: string[]; effect: string }> {
  const stage = await openStage(({ assistantCount, messages }) =>
    assistantCount === 0 && JSON.stringify(messages).includes('Announce it')
      ? { toolCalls: [{ name: 'announce', args: { text: stage.taskQueue } }] }
      : { text: 'Done.' },
  );
  const announced: string[] = [];
  const agent = herald(stage, (text) => {
    announced.push(text);
    return 'announced';
  });
  await stage.startWorker([agent]);
  const identity = { text: stage.taskQueue };
  const key = baseKey({ namespace: '', tool: 'announce', scope: 'global', callId: '', identity });
  return { stage, announced, effect: `effect:${key}` };
}

test('a chat session that a foreign client starts as the effect is refused, and the effect happens', async () => {
  const { stage, announced, effect } = await openHerald();
  const handle = await stage.client.workflow.start(WORKFLOW.session, {
    workflowId: effect,
    taskQueue: stage.taskQueue,
    args: [{ agent: 'herald', message: { text: 'I am the effect.' } }],
  });
  const session = await stage.sessions.start('herald', { id: stage.id(), message: 'Announce it.' });
  await expect(handle.result()).rejects.toMatchObject({
    cause: { type: 'INVALID_ARGUMENT', message: expect.stringContaining("Perdure's own") },
  });

  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: 'announced' },
  });
  expect(announced).toEqual([stage.taskQueue]);
  await expectFoldEqualsLive(stage.client, session);
});

test('an effect under the id of another key or with a forged digest does not run', async () => {
  const { stage, announced, effect } = await openHerald();
  const session = await stage.sessions.start('herald', { id: stage.id(), message: 'Announce it.' });
  await untilPhase(session, 'idle');
  const [started] = (await stage.client.workflow.getHandle(effect).fetchHistory()).events ?? [];
  const payload = started?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]?.data;
  const input = JSON.parse(Buffer.from(payload ?? []).toString()) as { effect: Record<string, unknown> };
  for (const forged of [
    { id: `${effect}0`, effect: input.effect },
    {
      id: `${effect}1`,
      effect: { ...input.effect, idempotencyKey: `${effect.slice(7)}1`, args: { text: 'other' } },
    },
  ]) {
    const handle = await stage.client.workflow.start(WORKFLOW.session, {
      workflowId: forged.id,
      taskQueue: stage.taskQueue,
      args: [{ ...input, effect: forged.effect }],
    });
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'INVALID_ARGUMENT' } });
  }
  expect(announced).toHaveLength(1);
});

test('forged word of an effect, to a session that waits and to one that does not, changes nothing', async () => {
  const { stage, announced, effect } = await openHerald();
  const session = await stage.sessions.start('herald', { id: stage.id(), message: 'Announce it.' });
  const handle = stage.client.workflow.getHandle(session.id);
  for (const payload of [{ callId: 'call_1_0' }, { callId: 'call_9_9' }, 'nonsense', null]) {
    await handle.signal(SIGNAL.effectDone, payload);
    await handle.signal(SIGNAL.awaitEffect, payload);
  }
  await untilPhase(session, 'idle');
  await stage.client.workflow
    .getHandle(effect)
    .signal(SIGNAL.awaitEffect, { sessionId: 'nobody', callId: 'x' });
  await handle.signal(SIGNAL.effectDone, { callId: 'call_1_0' });
  expect((await session.calls()).items[0]?.status.kind).toBe('completed');
  expect(announced).toHaveLength(1);
  await expectFoldEqualsLive(stage.client, session);
  await expectFoldEqualsLive(stage.client, stage.sessions.get(effect));
});

test("ids of Perdure's own workflows are refused to sessions and threads, by every way in", async () => {
  const { stage } = await openHerald();
  const saver = new TemporalSaver(stage.client, { taskQueue: stage.taskQueue });
  const api = await openApi(saver, { taskQueue: stage.taskQueue });
  for (const id of [
    'effect:abc',
    'perdure-thread/abc',
    'perdure-segment/abc',
    'perdure-content/a/0',
    'perdure-archive/a',
  ]) {
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining("Perdure's own") };
    await expect(stage.sessions.start('herald', { id })).rejects.toMatchObject(refusal);
    await expect(saver.put(id, {})).rejects.toMatchObject(refusal);
    const answer = await api.call('POST /sessions', { json: { agent: 'herald', id } });
    expect(answer).toMatchObject({ status: 400, ...refusal });
    const handle = await stage.client.workflow.start(WORKFLOW.session, {
      workflowId: id,
      taskQueue: stage.taskQueue,
      args: [{ agent: 'herald' }],
    });
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'INVALID_ARGUMENT' } });
  }
  await api.close();
  const thread = await stage.client.workflow.start(WORKFLOW.thread, {
    workflowId: 'effect:thread',
    taskQueue: stage.taskQueue,
    args: [{ threadId: 'effect:thread' }],
  });
  await expect(thread.result()).rejects.toMatchObject({ cause: { type: 'INVALID_ARGUMENT' } });
});
