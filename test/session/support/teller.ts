/** A teller whose sessions go on in new runs after a few turns, and what it has paid. */
import { expect } from 'vitest';
import { z } from 'zod';
import { defineAgent, defineTool, type Session } from '../../../src/index.ts';
import { previousRun } from '../../../src/temporal/index.ts';
import type { Script } from '../../../src/testing/index.ts';
import { openStage, type Stage } from '../../support/stage.ts';
import { replay } from './sound.ts';

/** Pays as the user says, and says what came of it. */
const teller: Script = ({ lastUserText, toolResults, stepInTurn }) =>
  stepInTurn === 0 && lastUserText.startsWith('pay')
    ? { toolCalls: [{ name: lastUserText.split(' ')[0] ?? '', args: { bill: lastUserText } }] }
    : { text: `${lastUserText}: ${toolResults.at(-1)?.text ?? 'nothing'}` };

export interface Teller {
  stage: Stage;
  session: Session;
  paid: string[];
}

/** @param options - `runTurns`: of the agent. Default: 3; `null`: that of the package */
export async function openTeller(options: { runTurns?: number | false | null } = {}): Promise<Teller> {
  const { runTurns = 3 } = options;
  const stage = await openStage(teller);
  const paid: string[] = [];
  const pay = (scope: 'session' | 'message') =>
    defineTool({
      description: 'Pays a bill',
      inputSchema: z.object({ bill: z.string() }),
      effect: 'mutate',
      idempotency: { scope },
      execute: ({ bill }) => {
        paid.push(bill);
        return { receipt: paid.length };
      },
    });
  const agent = defineAgent({
    name: 'teller',
    model: stage.provider('m'),
    instructions: 'Pay.',
    tools: { pay: pay('session'), payEach: pay('message') },
    ...(runTurns === null ? {} : { runTurns }),
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('teller', { id: stage.id() });
  return { stage, session, paid };
}

/** Sends messages one after the other, and waits for the answer of each. */
export async function say(session: Session, ...texts: string[]): Promise<void> {
  for (const text of texts) {
    const { messages } = await session.state();
    await session.send(text);
    await expect
      .poll(async () => {
        const { phase, messages: now } = await session.state();
        return phase === 'idle' && now > messages + 1;
      })
      .toBe(true);
  }
}

/** Ids of the session's runs, the oldest first. The history of each is replayed. */
export async function runsOf({ client }: Stage, { id }: Session): Promise<string[]> {
  const runs: string[] = [];
  let { runId } = await client.workflow.getHandle(id).describe();
  for (;;) {
    runs.unshift(runId);
    const history = await client.workflow.getHandle(id, runId).fetchHistory();
    // The server holds back a run after one that lived for less than a second: it may have no task yet.
    if ((history.events ?? []).length > 1) await replay(history, id);
    const before = previousRun(history.events?.[0]);
    if (before === null) return runs;
    runId = before;
  }
}
