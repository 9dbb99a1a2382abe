import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { type Checkpoint, defineAgent, defineTool, type Session, TemporalSaver } from '../../src/index.ts';
import {
  pauseEvents,
  type RunCheckpoint,
  readRunCheckpoint,
  readSessionCheckpoint,
  readSnapshot,
  resumedSection,
  runCheckpoint,
  runPhases,
  sessionCheckpoint,
  type TranscriptEvent,
  tailOf,
  terminalResult,
} from '../../src/saver/records/index.ts';
import { type ScriptedTurn, scriptedTurns } from '../../src/testing/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide } from '../support/decide.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { thrown } from '../support/thrown.ts';

const PEN = { chargeId: 'ch_1', cents: 9_000 };

/** A session that looks an order up, asks for a refund twice, and is done. */
async function openRefunds(): Promise<{ stage: Stage; saver: TemporalSaver; agent: string }> {
  const stage = await openStage(
    scriptedTurns([
      { text: 'I look.', toolCalls: [{ name: 'order', args: { id: '1' } }] },
      { toolCalls: [{ name: 'refund', args: PEN }] },
      { toolCalls: [{ name: 'refund', args: PEN }] },
      { text: 'Refunded.' },
    ]),
  );
  const agent = defineAgent({
    name: 'support',
    model: stage.provider('scripted'),
    instructions: 'Help.',
    tools: {
      order: defineTool({
        inputSchema: z.object({ id: z.string() }),
        effect: 'read',
        execute: () => {
          throw new Error('no such order');
        },
      }),
      refund: defineTool({
        inputSchema: z.object({ chargeId: z.string(), cents: z.number() }),
        needsApproval: true,
        execute: () => ({ refunded: true }),
      }),
    },
  });
  await stage.startWorker([agent]);
  return { stage, saver: new TemporalSaver(stage.client), agent: 'support' };
}

async function refunded(stage: Stage, mode: 'chat' | 'task'): Promise<Session> {
  const session = await stage.sessions.start('support', { id: stage.id(), message: 'Refund it.', mode });
  for (const callId of ['call_2_0', 'call_3_0']) {
    await untilPhase(session, 'approval');
    await decide(session, callId, { decision: 'approve' });
  }
  return session;
}

/** A chat that the model answers with these replies in turn. */
async function openTalk(...replies: ScriptedTurn[]): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(scriptedTurns(replies));
  const model = stage.provider('scripted');
  await stage.startWorker([defineAgent({ name: 'support', model, instructions: 'Help.', tools: {} })]);
  return { stage, session: await stage.sessions.start('support', { id: stage.id() }) };
}

function finishReasons(records: readonly RunCheckpoint[]): unknown[] {
  return records.filter(({ phase }) => phase === 'post_llm').map(({ payload }) => payload['finish_reason']);
}

const corruption = expect.objectContaining({ code: 'CHECKPOINT_CORRUPTION' });

describe('a run checkpoint', () => {
  test('is the session in the words of runs, and survives a round trip', async () => {
    const { stage, saver } = await openRefunds();
    const session = await refunded(stage, 'task');
    await session.result();
    const newest = await saver.list(session.id, { limit: 100 });
    const latest = newest[0] as Checkpoint;
    const record = runCheckpoint(latest);
    expect(record).toMatchObject({
      schema_version: 'v1',
      run_id: session.id,
      step: 4,
      phase: 'runtime_state',
    });
    expect(record.timestamp_ms).toBe(Date.parse(latest.created_at));
    const snapshot = readSnapshot(record.payload);
    expect(snapshot).toMatchObject({
      step: 4,
      state: 'completed',
      llm_calls: 4,
      thread_id: session.id,
      checkpoint_token: latest.id,
      pending_llm_response: null,
      final_text: 'Refunded.',
      final_response: { state: 'completed', text: 'Refunded.', turns: 4 },
      replayed_effect_count: 1,
      background_tools_pending: [],
      subagent_executions: [],
    });
    expect(snapshot.messages).toEqual(latest.state['transcript']);
    expect(snapshot.usage.total_tokens).toBe(snapshot.usage.input_tokens + snapshot.usage.output_tokens);
    expect(snapshot.usage.total_tokens).toBeGreaterThan(0);
    expect(
      snapshot.tool_executions.map(({ tool_call_id, tool_name, success, replayed_from }) => [
        tool_call_id,
        tool_name,
        success,
        replayed_from,
      ]),
    ).toEqual([
      ['call_1_0', 'order', false, null],
      ['call_2_0', 'refund', true, null],
      ['call_3_0', 'refund', true, 'call_2_0'],
    ]);
    expect(snapshot.tool_executions[1]?.output).toEqual({ refunded: true });
    expect(terminalResult(latest)).toEqual({ state: 'completed', text: 'Refunded.', turns: 4 });
    for (const checkpoint of newest) {
      const one = runCheckpoint(checkpoint);
      expect(readRunCheckpoint(JSON.parse(JSON.stringify(one)))).toEqual(one);
    }
  });

  test('shows a reply whose calls have not ended as pending, and what waits', async () => {
    const { stage, saver } = await openRefunds();
    const session = await stage.sessions.start('support', { id: stage.id(), message: 'Refund it.' });
    await untilPhase(session, 'approval');
    const latest = (await saver.get(session.id)) as Checkpoint;
    const snapshot = readSnapshot(runCheckpoint(latest).payload);
    expect(snapshot.state).toBe('running');
    expect(snapshot.pending_llm_response?.tool_calls).toEqual([
      { id: 'call_2_0', name: 'refund', args: PEN },
    ]);
    expect(snapshot.background_tools_pending).toEqual(['call_2_0']);
    expect(terminalResult(latest)).toBeNull();
    await session.pause({ by: 'ada' });
    await untilPhase(session, 'paused');
    expect(runCheckpoint((await saver.get(session.id)) as Checkpoint).payload['state']).toBe('paused');
  });

  test('passes through the phases of a run in their order', async () => {
    const { stage, saver } = await openRefunds();
    const session = await refunded(stage, 'task');
    await session.result();
    const oldest = (await saver.list(session.id, { limit: 100 })).reverse();
    const records: RunCheckpoint[] = oldest.flatMap((one, i) => runPhases(one, oldest[i - 1] ?? null));
    for (const record of records) expect(readRunCheckpoint(record)).toEqual(record);
    const ask = ['step_started', 'pre_llm', 'post_llm'];
    const tools = ['pre_tool_batch', 'post_tool_batch'];
    expect(records.map(({ phase }) => phase)).toEqual([
      'run_started',
      ...ask,
      ...tools,
      ...ask,
      ...tools,
      ...ask,
      ...tools,
      ...ask,
      'run_terminal',
    ]);
    expect(records.filter(({ phase }) => phase === 'post_tool_batch').map(({ payload }) => payload)).toEqual([
      { tool_calls_total: 1, tool_failures: 1 },
      { tool_calls_total: 1, tool_failures: 0 },
      { tool_calls_total: 1, tool_failures: 0 },
    ]);
    expect(finishReasons(records)).toEqual(['tool-calls', 'tool-calls', 'tool-calls', 'stop']);
    expect(records[0]?.payload).toEqual({ agent_name: 'support', resumed: false });
    expect(records.at(-1)?.payload['terminal_result']).toEqual({
      state: 'completed',
      text: 'Refunded.',
      turns: 4,
    });
  });

  test('says why the model ended each reply, and what a final text of JSON is', async () => {
    const { stage, session } = await openTalk(
      { text: '{"refunded": true, "cents": [1, 2]}', finishReason: 'length' },
      { text: 'Done: {}' },
      { text: '\n[1, "two", null]' },
      { text: '[1e999]' },
    );
    const saver = new TemporalSaver(stage.client);
    const structured: unknown[] = [];
    for (const text of ['a', 'b', 'c', 'd']) {
      await session.send(text);
      await until(session, ({ turn, phase }) => phase === 'idle' && turn === structured.length + 1);
      const { payload } = runCheckpoint((await saver.get(session.id)) as Checkpoint);
      expect(readSnapshot(JSON.parse(JSON.stringify(payload)))).toEqual(payload);
      structured.push(payload['final_structured']);
    }
    expect(structured).toEqual([{ refunded: true, cents: [1, 2] }, null, [1, 'two', null], null]);
    const oldest = (await saver.list(session.id, { limit: 100 })).reverse();
    const records = oldest.flatMap((one, i) => runPhases(one, oldest[i - 1] ?? null));
    expect(finishReasons(records)).toEqual(['length', 'stop', 'stop', 'stop']);
    // Two turns between two checkpoints: each reply has its own reason.
    expect(finishReasons(runPhases(oldest.at(-1) as Checkpoint, oldest[0] as Checkpoint))).toEqual([
      'length',
      'stop',
      'stop',
      'stop',
    ]);
    const { state } = oldest.at(-1) as Checkpoint;
    const reply = (state['transcript'] as { id: string }[])[1];
    expect(state['finishReasons']).toEqual({ [reply?.id ?? '']: 'length' });
    await expectSound(stage, session);

    // What is not an object or an array is no structured answer.
    const good = runCheckpoint(oldest.at(-1) as Checkpoint);
    const text = { ...good, payload: { ...good.payload, final_structured: 'text' } };
    expect(thrown(() => readRunCheckpoint(text))).toEqual(corruption);
  });

  test('keeps why replies ended in a fork, and gives the id of a reply that an edit took out no old reason', async () => {
    let cut = true;
    const { stage, session } = await openTalk(
      () => (cut ? { text: 'one', finishReason: 'length' } : { text: 'one' }),
      { text: 'two' },
    );
    const saver = new TemporalSaver(stage.client);
    await session.send('a');
    await until(session, ({ turn, phase }) => phase === 'idle' && turn === 1);
    const { id: checkpointId } = (await saver.get(session.id)) as Checkpoint;
    const { finishReasons: reasons } = await session.snapshot();
    expect(Object.values(reasons ?? {})).toEqual(['length']);
    const fork = await stage.sessions.fork(
      { sessionId: session.id, checkpointId },
      { agent: 'support', by: 'ada', reason: 'to compare', id: stage.id('fork'), message: 'b' },
    );
    await until(fork, ({ turn, phase }) => phase === 'idle' && turn === 2);
    expect((await fork.snapshot()).finishReasons).toEqual(reasons);
    await expectSound(stage, fork);

    cut = false;
    await session.edit({ by: 'ada', reason: 'again', transcript: { from: 0, messages: [] } });
    await session.send('a');
    await until(session, ({ turn, phase }) => phase === 'idle' && turn === 2);
    const { transcript, finishReasons: after } = await session.snapshot();
    expect(transcript.map(({ id }) => id)).toContain(Object.keys(reasons ?? {})[0]);
    expect(after).toEqual({});
    await expectSound(stage, session);
  });

  test('is refused when it is missing, malformed, of another version, or not what it says', async () => {
    const { stage, saver } = await openRefunds();
    const session = await refunded(stage, 'chat');
    await untilPhase(session, 'idle');
    const latest = (await saver.get(session.id)) as Checkpoint;
    const good = runCheckpoint(latest);
    const snapshot = good.payload as { tool_executions: { args: unknown; tool_call_id: string }[] };
    const [first, ...rest] = snapshot.tool_executions;
    const withCalls = (...tool_executions: unknown[]): unknown => ({
      ...good,
      payload: { ...good.payload, tool_executions },
    });
    const withMessage = (message: object) => ({
      ...good,
      payload: { ...good.payload, messages: [message] },
    });
    const model_output = { type: 'text', value: 'one' };
    const result = { kind: 'tool_result', call_id: 'c', name: 'count', content: 1, is_error: false };
    const told = {
      id: 'm',
      role: 'tool',
      created_at: '2026-01-01T00:00:00.000Z',
      blocks: [{ ...result, model_output }],
    };
    const bad: unknown[] = [
      undefined,
      null,
      {},
      { ...good, schema_version: 'v2' },
      { ...good, phase: 'elsewhere' },
      { ...good, payload: {} },
      withMessage({ ...told, blocks: [{ kind: 'image' }] }),
      withMessage({ ...told, surprise: true }),
      { ...good, payload: { ...good.payload, pending_llm_response: { tool_calls: 1 } } },
      { ...good, payload: { ...good.payload, surprise: true } },
      { ...good, phase: 'run_terminal', payload: {} },
      withCalls({ ...first, args: { id: '2' } }),
      withCalls({ ...first, output: 'another' }),
      withCalls(first, { ...rest[0], tool_call_id: first?.tool_call_id }),
    ];
    for (const value of bad) expect(thrown(() => readRunCheckpoint(value))).toEqual(corruption);
    expect(readRunCheckpoint(good)).toEqual(good);
    // What the model was sent in place of a result is part of the message.
    expect(readRunCheckpoint(withMessage(told))).toEqual(withMessage(told));
    // Nothing of one is lost on the way, whatever its keys.
    const context: unknown = JSON.parse('{"__proto__":{"a":1},"b":[{"__proto__":2}]}');
    const odd = { ...good, payload: { ...good.payload, context } };
    expect(JSON.stringify(readSnapshot(readRunCheckpoint(odd).payload).context)).toBe(
      JSON.stringify(context),
    );

    const foreign = { ...latest, metadata: {} };
    const newer = { ...latest, state: { ...latest.state, schema: 2 } };
    for (const one of [foreign, newer]) {
      expect(thrown(() => runCheckpoint(one))).toEqual(corruption);
      expect(thrown(() => sessionCheckpoint(one))).toEqual(corruption);
    }
  });
});

describe('a session checkpoint', () => {
  test('holds constraints, agents with their tails, and the depth, and survives a round trip', async () => {
    const { stage, saver } = await openRefunds();
    const session = await stage.sessions.start('support', {
      id: stage.id(),
      message: 'Refund it.',
      budget: { turns: 5, toolCalls: 100 },
    });
    await untilPhase(session, 'approval');
    await session.pause({ by: 'ada' });
    await untilPhase(session, 'paused');
    const latest = (await saver.get(session.id)) as Checkpoint;
    const view = sessionCheckpoint(latest, { transcriptReplayDepth: 2, minimum: { rounds: 3 } });
    expect(view).toMatchObject({
      sessionId: session.id,
      roundsCompleted: 2,
      pendingDelegations: [],
      transcriptReplayDepth: 2,
      createdAt: latest.created_at,
      constraintState: {
        rounds_completed: 2,
        past_min_rounds: false,
        past_min_time: true,
        approaching_max_rounds: false,
        hit_maximum: false,
        hit_reason: null,
        can_end: false,
      },
    });
    expect(view.constraintState.elapsed_minutes).toBeGreaterThan(0);
    expect(view.activeAgents).toMatchObject([{ agentId: 'support', depth: 0 }]);
    expect(view.activeAgents[0]?.conversationTail.map(({ text }) => text)).toEqual([
      expect.stringContaining('order failed: '),
      'refund({"cents":9000,"chargeId":"ch_1"})',
    ]);
    expect(readSessionCheckpoint(JSON.parse(JSON.stringify(view)))).toEqual(view);
    expect(view.activeAgents[0]).not.toHaveProperty('expertiseSnapshot');
    const expertiseSnapshot = '# Notes\n- the order is ch_1\n';
    const noted = sessionCheckpoint(latest, { expertiseSnapshot });
    expect(noted.activeAgents).toMatchObject([{ agentId: 'support', expertiseSnapshot }]);
    expect(readSessionCheckpoint(JSON.parse(JSON.stringify(noted)))).toEqual(noted);
    const [agent] = noted.activeAgents;
    for (const bad of [
      undefined,
      {},
      { ...view, extra: 1 },
      { ...noted, activeAgents: [{ ...agent, expertiseSnapshot: 1 }] },
      { ...view, activeAgents: [{ agentId: 'x' }] },
    ]) {
      expect(thrown(() => readSessionCheckpoint(bad))).toEqual(corruption);
    }
    expect(sessionCheckpoint(latest, { transcriptReplayDepth: 0 }).activeAgents[0]?.conversationTail).toEqual(
      [],
    );
    const tight = structuredClone(latest);
    Object.assign(tight.state['budget'] as object, { limits: { turns: 2 } });
    expect(sessionCheckpoint(tight).constraintState).toMatchObject({
      approaching_max_rounds: true,
      hit_maximum: true,
      hit_reason: 'rounds',
    });
  });

  test('is refused when what concerns a sub-agent is in an earlier run, and when its depth is none', async () => {
    const { stage, saver } = await openRefunds();
    const session = await stage.sessions.start('support', { id: stage.id(), message: 'Refund it.' });
    await untilPhase(session, 'approval');
    const latest = (await saver.get(session.id)) as Checkpoint;
    const rolled = structuredClone(latest);
    // A sub-agent that works in the background while the session goes on in a new run.
    Object.assign(rolled.state, {
      past: { messages: 2, calls: 1 },
      children: [{ sessionId: `${session.id}/call_1_1`, agent: 'clerk', callId: 'call_1_1' }],
    });
    expect(thrown(() => sessionCheckpoint(rolled, { transcriptReplayDepth: 1 }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('Pass the result of wholeCheckpoint'),
    });
    expect(sessionCheckpoint(rolled, { transcriptReplayDepth: 0 }).activeAgents).toHaveLength(2);
    for (const transcriptReplayDepth of [-1, 1.5, Number.NaN])
      expect(thrown(() => sessionCheckpoint(latest, { transcriptReplayDepth }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: { field: 'transcriptReplayDepth' },
      });
  });

  test('knows one pause and one resume a cycle, however often they were asked for', async () => {
    const { stage, saver } = await openRefunds();
    const session = await stage.sessions.start('support', { id: stage.id(), message: 'Refund it.' });
    await untilPhase(session, 'approval');
    for (const by of ['ada', 'bob', 'ada']) await session.pause({ by });
    await untilPhase(session, 'paused');
    const pausedAt = (await saver.get(session.id)) as Checkpoint;
    expect(pauseEvents(pausedAt)).toMatchObject([{ type: 'session_paused', by: 'ada' }]);
    for (const by of ['bob', 'ada']) await session.resume({ by });
    await untilPhase(session, 'approval');
    const events = pauseEvents((await saver.get(session.id)) as Checkpoint);
    expect(events).toMatchObject([
      { type: 'session_paused', by: 'ada' },
      { type: 'session_resumed', by: 'bob' },
    ]);
    // A rewind to the pause ends it, too.
    const from = { sessionId: session.id, checkpointId: pausedAt.id };
    const rewound = await stage.sessions.rewind(from, { by: 'eve', reason: 'again' });
    await untilPhase(rewound, 'approval');
    expect(pauseEvents((await saver.get(session.id)) as Checkpoint)).toMatchObject([
      { type: 'session_paused', by: 'ada' },
      { type: 'session_resumed', by: 'eve' },
    ]);
  });

  test('gives each agent its own tail: what it wrote, as a child, and what was delegated to its exact id', () => {
    const entry = (id: string, agentId: string, more: Partial<TranscriptEvent> = {}): TranscriptEvent => ({
      id,
      agentId,
      at: '2026-01-01T00:00:00.000Z',
      role: 'assistant',
      text: `said ${id}`,
      ...more,
    });
    const entries = [
      entry('1', 'cost'),
      entry('2', 'legal'),
      entry('3', 'root', { delegationTargets: ['cost', 'legal'] }),
      entry('4', 'root', { delegationTargets: ['cost-2'] }),
      entry('5', 'root', { childAgentId: 'cost' }),
    ];
    const ids = (agent: string, depth: number): string[] => tailOf(entries, agent, depth).map(({ id }) => id);
    expect(ids('cost', 50)).toEqual(['1', '3', '5']);
    expect(ids('cost', 2)).toEqual(['3', '5']);
    expect(ids('cost', 0)).toEqual([]);
    expect(ids('legal', 50)).toEqual(['2', '3']);
    expect(ids('nobody', 50)).toEqual([]);
    const section = resumedSection({
      agentId: 'cost',
      depth: 1,
      conversationTail: tailOf(entries, 'cost', 2),
    });
    expect(section.split('\n')[0]).toBe('## Session Context (Resumed)');
    expect(section).toContain('assistant: said 3\n');
    expect(resumedSection({ agentId: 'cost', depth: 1, conversationTail: [] })).toBe('');
  });
});
