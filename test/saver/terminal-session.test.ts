/** Who resumes a session that has ended gets its stored result: no model is asked, and no tool is called. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  type Checkpoint,
  defineAgent,
  defineTool,
  type Session,
  Sessions,
  TemporalSaver,
} from '../../src/index.ts';
import { readSnapshot, runCheckpoint, terminalResult } from '../../src/saver/records/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type RunningWorker, type Stage, untilPhase } from '../support/stage.ts';

interface Charged {
  stage: Stage;
  worker: RunningWorker;
  startWorker(): Promise<RunningWorker>;
  /** What the world has seen so far: requests to the model, and charges. */
  seen(): { requests: number; charges: number };
}

/** An agent that charges once and says so. */
async function openCharges(script: Script): Promise<Charged> {
  const stage = await openStage(script);
  let charges = 0;
  const agent = defineAgent({
    name: 'charger',
    model: stage.provider('scripted'),
    instructions: 'Charge.',
    tools: {
      charge: defineTool({
        inputSchema: z.object({ cents: z.number() }),
        effect: 'mutate',
        execute: ({ cents }) => {
          charges += 1;
          return { charged: cents };
        },
      }),
    },
  });
  const startWorker = (): Promise<RunningWorker> => stage.startWorker([agent]);
  return {
    stage,
    worker: await startWorker(),
    startWorker,
    seen: () => ({ requests: stage.model.requests.length, charges }),
  };
}

const CHARGE: Script = ({ stepInTurn }) =>
  stepInTurn === 0 ? { toolCalls: [{ name: 'charge', args: { cents: 700 } }] } : { text: 'Charged.' };

/** As a process that has only the session's id. */
async function latest({ client, taskQueue }: Stage, { id }: Session): Promise<Checkpoint> {
  const found = await new TemporalSaver(client, { taskQueue }).get(id);
  if (found === null) throw new Error('no checkpoint');
  return found;
}

test('a completed session that is resumed answers its stored result, with and without a worker', async () => {
  const { stage, worker, startWorker, seen } = await openCharges(CHARGE);
  const session = await stage.sessions.start('charger', { id: stage.id(), message: 'Do.', mode: 'task' });
  const result = await session.result();
  expect(result).toEqual({ status: 'completed', text: 'Charged.', turns: 2 });
  const before = seen();
  expect(before).toEqual({ requests: 2, charges: 1 });
  const stored = await new TemporalSaver(stage.client).list(session.id, { limit: 1_000 });

  const resume = async (): Promise<void> => {
    const again = new Sessions(stage.client, { taskQueue: stage.taskQueue }).get(session.id);
    expect(await again.result()).toEqual(result);
    expect(await again.result()).toEqual(result);
    const checkpoint = await latest(stage, again);
    expect(terminalResult(checkpoint)).toEqual({ state: 'completed', text: 'Charged.', turns: 2 });
    const snapshot = readSnapshot(runCheckpoint(checkpoint).payload);
    expect(snapshot.final_response).toEqual(terminalResult(checkpoint));
    expect(snapshot.tool_executions.map(({ output }) => output)).toEqual([{ charged: 700 }]);
    // What would make it go on is refused, and it is not started a second time under its id.
    expect(await rejection(again.resume())).toMatchObject({ code: 'SESSION_CLOSED' });
    expect(await rejection(again.send('Do it again.'))).toMatchObject({ code: 'SESSION_CLOSED' });
    for (const onExisting of ['fail', 'use'] as const) {
      const options = { id: session.id, message: 'Do.', mode: 'task' as const, onExisting };
      expect(await rejection(stage.sessions.start('charger', options))).toMatchObject({
        code: 'SESSION_EXISTS',
      });
    }
  };
  await resume();
  await worker.stop();
  await resume();
  await startWorker();
  await resume();
  expect(seen()).toEqual(before);
  expect(await new TemporalSaver(stage.client).list(session.id, { limit: 1_000 })).toEqual(stored);
});

test('a cancelled session answers what it had said, and does not go on', async () => {
  const { stage, worker, seen } = await openCharges(CHARGE);
  const session = await stage.sessions.start('charger', { id: stage.id(), message: 'Do.' });
  await untilPhase(session, 'idle');
  await session.cancel({ by: 'ada', reason: 'enough' });
  const result = await session.result();
  expect(result).toEqual({ status: 'cancelled', text: 'Charged.', turns: 2 });
  const before = seen();
  expect(before).toEqual({ requests: 2, charges: 1 });
  await worker.stop();
  expect(await stage.sessions.get(session.id).result()).toEqual(result);
  expect(terminalResult(await latest(stage, session))).toEqual({
    state: 'cancelled',
    text: 'Charged.',
    turns: 2,
  });
  expect(await rejection(session.resume())).toMatchObject({ code: 'SESSION_CLOSED' });
  expect(seen()).toEqual(before);
});

test('one that has not ended has no result to be answered with', async () => {
  const { stage, seen } = await openCharges(CHARGE);
  const session = await stage.sessions.start('charger', { id: stage.id(), message: 'Do.' });
  await untilPhase(session, 'idle');
  expect(terminalResult(await latest(stage, session))).toBeNull();
  expect(seen()).toEqual({ requests: 2, charges: 1 });
});
