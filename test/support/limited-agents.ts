/** An agent whose provider allows a number of tokens in a window, which the environment gives. */

import * as z from 'zod';
import { defineAgent, type SessionWorkerOptions } from '../../src/index.ts';

const { RATE_TOKENS = '3000', RATE_WINDOW = '3000' } = process.env;
const windowMs = Number(RATE_WINDOW);

export const limited: ReturnType<typeof defineAgent> = defineAgent({
  name: 'limited',
  model: 'scripted:model',
  // About 250 tokens: what the provider says that each prompt has.
  instructions: 'Answer in few words. '.repeat(40),
  maxOutputTokens: 100,
  context: z.object({ tenant: z.string() }),
});

export const workerOptions: Partial<SessionWorkerOptions> = {
  rateLimits: {
    scripted: { tokensPerMinute: (Number(RATE_TOKENS) * 60_000) / windowMs, window: windowMs },
  },
};
