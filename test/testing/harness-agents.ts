/** The agents of the harness's own tests, as a user would write them. */
import { appendFile, readFile } from 'node:fs/promises';
import * as z from 'zod';
import { type DefinedAgent, defineAgent, defineTool, type SessionWorkerOptions } from '../../src/index.ts';

const ledger = (): string => process.env['LEDGER'] ?? '';

const append = defineTool({
  inputSchema: z.object({ line: z.string() }),
  settle: '50ms',
  execute: async ({ line }, { idempotencyKey }) => {
    await appendFile(ledger(), `${idempotencyKey} ${line}\n`);
    return { appended: line };
  },
  verify: async ({ line }, { idempotencyKey }) => {
    const text = await readFile(ledger(), 'utf8').catch(() => '');
    return text.includes(idempotencyKey)
      ? { outcome: 'landed', output: { appended: line } }
      : { outcome: 'absent' };
  },
});

const find = defineTool({
  inputSchema: z.object({ line: z.string() }),
  effect: 'read',
  execute: ({ line }) => ({ found: line }),
});

/** Its model is never asked: the harness puts the scripted one in its place. */
export const clerk: DefinedAgent = defineAgent({
  name: 'clerk',
  model: { model: 'openai:gpt-5', price: { inputPerMillion: 1, outputPerMillion: 2 } },
  instructions: 'Keep the ledger.',
  tools: { append, find },
  heartbeat: '1s',
});

export const workerOptions: Partial<SessionWorkerOptions> = {
  maxConcurrentActivityTaskExecutions: 3,
  ...(process.env['IMPATIENT'] === undefined ? {} : { shutdownGraceTime: '10ms' }),
};
