/** The idempotency key of a read: its worker computes it where it can, and a tool always gets the key on record. */
import { randomUUID } from 'node:crypto';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session, TemporalSaver, type ToolContext } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { decide } from '../support/decide.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const inputSchema = z.object({ id: z.string() });

/** A session whose first reply asks for four reads that wait for a person, and its second for one that does not. */
async function begin(): Promise<{ stage: Stage; session: Session; keys: Map<string, string[]> }> {
  const asked = ['plain', 'edited', 'once', 'named'].map((name) => ({ name, args: { id: name } }));
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0
      ? { toolCalls: asked }
      : assistantCount === 1
        ? { toolCalls: [{ name: 'free', args: { id: 'free' } }] }
        : { text: 'Read.' },
  );
  const keys = new Map<string, string[]>();
  const execute = (_: { id: string }, { sessionId, idempotencyKey }: ToolContext): string => {
    keys.set(sessionId, [...(keys.get(sessionId) ?? []), idempotencyKey]);
    return 'read';
  };
  const read = { inputSchema, effect: 'read', execute } as const;
  const asking = { ...read, needsApproval: true };
  const tools = {
    plain: defineTool(asking),
    edited: defineTool(asking),
    once: defineTool({ ...asking, idempotency: { scope: 'session' } }),
    named: defineTool({ ...asking, idempotency: { scope: 'call', args: ['id'] } }),
    free: defineTool(read),
  };
  const model = stage.provider('m');
  await stage.startWorker([defineAgent({ name: 'reader', model, instructions: 'Read.', tools })]);
  const session = await stage.sessions.start('reader', { id: stage.id(), message: 'read' });
  await untilPhase(session, 'approval');
  return { stage, session, keys };
}

/** Lets the reads run, one after the other. @returns the keys on record */
async function readAll(session: Session): Promise<string[]> {
  for (const n of [0, 1, 2, 3]) {
    const edit = { decision: 'edit', args: { id: 'of a person' } } as const;
    await decide(session, `call_1_${n}`, n === 1 ? edit : { decision: 'approve' });
    await expect.poll(async () => (await session.calls()).items[n]?.status.kind).toBe('completed');
  }
  await untilPhase(session, 'idle');
  return (await session.calls()).items.map(({ idempotencyKey }) => idempotencyKey);
}

test('the tools of a session, of its fork and of its rewind get the keys on record', async () => {
  const { stage, session, keys } = await begin();
  const [open] = await new TemporalSaver(stage.client).list(session.id, { limit: 1 });
  const recorded = await readAll(session);
  expect(keys.get(session.id)).toEqual(recorded);
  expect(new Set(recorded).size).toBe(5);
  await expectSound(stage, session);

  const from = { sessionId: session.id, checkpointId: open?.id ?? '' };
  const why = { by: 'ada', reason: 'what if' };
  const fork = await stage.sessions.fork(from, { id: stage.id('fork'), ...why });
  await untilPhase(fork, 'approval');
  const forked = await readAll(fork);
  expect(keys.get(fork.id)).toEqual(forked);
  expect(forked.filter((key) => recorded.includes(key))).toEqual([]);

  keys.clear();
  await stage.sessions.rewind(from, why);
  await untilPhase(session, 'approval');
  expect(await readAll(session)).toEqual(recorded);
  expect(keys.get(session.id)).toEqual(recorded);
});

test('the tools of a session that a person resets get the keys that are on record', async () => {
  const { stage, session, keys } = await begin();
  const recorded = await readAll(session);
  keys.clear();
  const { runId } = await session.state();
  const { history } = await expectSound(stage, session);
  const first = history.events.find((event) => event.workflowTaskCompletedEventAttributes);
  await stage.client.workflowService.resetWorkflowExecution({
    namespace: stage.client.options.namespace,
    workflowExecution: { workflowId: session.id },
    reason: 'test',
    requestId: randomUUID(),
    workflowTaskFinishEventId: first?.eventId ?? null,
    resetReapplyType: proto.temporal.api.enums.v1.ResetReapplyType.RESET_REAPPLY_TYPE_NONE,
  });
  await until(session, (view) => view.runId !== runId && view.phase === 'approval');
  expect(await readAll(session)).toEqual(recorded);
  expect(keys.get(session.id)).toEqual(recorded);
});

test('the history of a plain read holds no key and no default', async () => {
  const stage = await openStage(
    scriptedTurns([{ toolCalls: [{ name: 'look', args: { id: 'a' } }] }, { text: 'Read.' }]),
  );
  const look = defineTool({ inputSchema, effect: 'read', execute: ({ id }) => id });
  const model = stage.provider('m');
  await stage.startWorker([defineAgent({ name: 'reader', model, instructions: 'Read.', tools: { look } })]);
  const session = await stage.sessions.start('reader', { id: stage.id(), message: 'read' });
  await untilPhase(session, 'idle');
  const { history } = await expectSound(stage, session);
  const inputs = history.events.map((event) =>
    Buffer.from(event.activityTaskScheduledEventAttributes?.input?.payloads?.[0]?.data ?? []).toString(),
  );
  expect(JSON.parse(inputs.findLast((input) => input !== '') ?? '')).toMatchObject({
    turn: 2,
    first: { reads: [{ callId: 'call_1_0' }] },
  });
  const texts = inputs.join('\n');
  expect(texts).not.toContain('idempotencyKey');
  expect(texts).not.toContain('resultBytes');
});
