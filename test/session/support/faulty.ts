/** A session whose model misbehaves as a script says. */
import { expect } from 'vitest';
import * as z from 'zod';
import {
  type AgentOptions,
  defineAgent,
  defineTool,
  type Session,
  type SessionView,
} from '../../../src/index.ts';
import type { Fault, Script } from '../../../src/testing/index.ts';
import { openStage, type Stage, untilPhase } from '../../support/stage.ts';
import { expectSound } from './sound.ts';

const price = { inputPerMillion: 1, outputPerMillion: 1 };

/** A session whose model does what the script says, at a price that makes a token a millionth of a dollar. */
export async function ask(
  script: Script,
  options: Partial<AgentOptions> = {},
): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(script);
  const agent = defineAgent({
    name: 'faulty',
    model: { model: stage.provider('m'), price },
    instructions: 'Answer.',
    maxOutputTokens: 100,
    tools: {
      look: defineTool({
        inputSchema: z.object({ id: z.string() }),
        effect: 'read',
        execute: ({ id }) => id,
      }),
    },
    ...options,
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('faulty', { id: stage.id(), message: 'go' });
  return { stage, session };
}

/** The reply once the fault has struck so many times. */
export const passes: (times: number, fault: Fault) => Script =
  (times: number, fault: Fault): Script =>
  (request) =>
    request.repeat < times ? fault : { text: 'fine' };

/** Rests with its answer; says how often the endpoint was asked. */
export async function answered(
  stage: Stage,
  session: Session,
): Promise<{ view: SessionView; requests: number }> {
  const view = await untilPhase(session, 'idle', 'waiting');
  expect(view).toMatchObject({ phase: 'idle', lastText: 'fine', turn: 1, wait: null });
  return { view, requests: stage.model.requests.length };
}

/** What one lost request costs: all that was reserved for it. */
export async function reservedForFirstCall(stage: Stage, session: Session): Promise<number> {
  const { checkpoints } = await expectSound(stage, session);
  return checkpoints.find(({ budget }) => budget.reserved.tokens > 0)?.budget.reserved.tokens ?? 0;
}
