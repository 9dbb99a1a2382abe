/** An agent whose only tool announces a text: one effect for all sessions. */
import * as z from 'zod';
import { type DefinedAgent, defineAgent, defineTool, type Verification } from '../../src/index.ts';
import type { Stage } from './stage.ts';

type Call = { idempotencyKey: string; abortSignal: AbortSignal };

/** The agent `herald`, on the stage's model. */
export function herald(
  stage: Stage,
  announce: (text: string, call: Call) => unknown,
  options: {
    timeout?: '1s';
    settle?: '100ms';
    verify?: (args: { text: string }, call: Call) => Verification<unknown>;
  } = {},
): DefinedAgent {
  return defineAgent({
    name: 'herald',
    model: stage.provider('scripted'),
    instructions: 'Announce.',
    tools: {
      announce: defineTool({
        inputSchema: z.object({ text: z.string() }),
        idempotency: { scope: 'global', ttl: '1h' },
        execute: ({ text }: { text: string }, call) => announce(text, call),
        ...options,
      }),
    },
  });
}
