import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool } from '../../src/index.ts';
import { take } from '../../src/session/advance.ts';
import { initialState } from '../../src/session/initial.ts';
import { openStage, until } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

test('a worker that has never seen the session sends the model the very transcript, from a long history', async () => {
  const stage = await openStage(({ stepInTurn, messages }) =>
    stepInTurn === 0
      ? {
          toolCalls: Array.from({ length: 6 }, (_, i) => ({
            name: 'rows',
            args: { i: i + messages.length },
          })),
        }
      : { text: `turn with ${messages.length} messages` },
  );
  const rows = defineTool({
    inputSchema: z.object({ i: z.number() }),
    effect: 'read',
    execute: ({ i }) => `${i}${'é'.repeat(50_000)}`,
  });
  const agent = defineAgent({
    name: 'rows',
    model: stage.provider('m'),
    instructions: 'Read.',
    tools: { rows },
    // The whole transcript in one run.
    runTurns: false,
  });
  const first = await stage.startWorker([agent]);
  const session = await stage.sessions.start('rows', { id: stage.id(), message: 'one' });
  for (let turn = 2; turn <= 10; turn += 2) {
    await until(session, (view) => view.turn === turn && view.phase === 'idle');
    if (turn === 8) {
      await first.stop();
      // Too little memory for any transcript: each call reads the history.
      await stage.startWorker([agent], { memoryBytes: 1 });
    }
    if (turn < 10) await session.send(`message ${turn}`);
  }
  const { historySize = 0 } = await stage.client.workflow.getHandle(session.id).describe();
  expect(historySize).toBeGreaterThan(2_500_000);
  // What the endpoint was sent last is what it was sent before, and more.
  const prompts = stage.model.requests.map(({ request }) => JSON.stringify(request.messages));
  for (const [i, prompt] of prompts.entries()) {
    const before = prompts[i - 1]?.slice(0, -1) ?? '';
    expect(prompt.startsWith(before)).toBe(true);
  }
  await expectSound(stage, session);
});

test('a transcript is known by what was said and not by when, which a replay may see otherwise', () => {
  const said = (now: number, text: string): string => {
    const moment = { now, historyEvents: 1, historyBytes: 1 };
    const input = { agent: 'a', message: { text } };
    const state = initialState({ sessionId: 's', runId: 'r', firstRunId: 'r' }, input, moment);
    take(state, { type: 'take_messages' }, moment);
    expect(state.transcript[0]?.created_at).toBe(new Date(now).toISOString());
    return state.position.digest;
  };
  expect(said(1_000, 'hi')).toBe(said(2_000, 'hi'));
  expect(said(1_000, 'hi')).not.toBe(said(1_000, 'ho'));
});
