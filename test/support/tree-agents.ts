/** The agents of the tests of trees: the module that worker processes load. The model's name is the agent's. */
import { appendFileSync } from 'node:fs';
import * as z from 'zod';
import {
  agentTool,
  type DefinedAgent,
  defineAgent,
  defineTool,
  type SessionWorkerOptions,
} from '../../src/index.ts';
import { breakpoint } from '../../src/testing/index.ts';

/** A mutation that can be seen from outside: a line in the file `TREE_LEDGER`. */
const write = defineTool({
  description: 'Write a line',
  inputSchema: z.object({ line: z.string() }),
  effect: 'mutate',
  settle: '100ms',
  maxAttempts: 10,
  execute: async ({ line }, { idempotencyKey }) => {
    await breakpoint('write');
    appendFileSync(process.env['TREE_LEDGER'] ?? '', `${line} ${idempotencyKey}\n`);
    await breakpoint('written');
    return `wrote ${line}`;
  },
  verify: () => ({ outcome: 'absent' }),
});

/** See `effect-agents.ts`. */
export const workerOptions: Partial<SessionWorkerOptions> = { debugMode: true };

const common = { instructions: 'Work.', heartbeat: '1s' } as const;

export const leaf: DefinedAgent = defineAgent({ ...common, name: 'leaf', model: 'leaf', tools: { write } });
export const middle: DefinedAgent = defineAgent({
  ...common,
  name: 'middle',
  model: 'middle',
  tools: { leaf: agentTool(leaf) },
});
export const root: DefinedAgent = defineAgent({
  ...common,
  name: 'root',
  model: 'root',
  tools: { middle: agentTool(middle), leaf: agentTool(leaf) },
});
/** Continues in a new run after each turn. */
export const boss: DefinedAgent = defineAgent({
  ...common,
  name: 'boss',
  model: 'boss',
  runTurns: 1,
  tools: { helper: agentTool(leaf, { background: true }) },
});
