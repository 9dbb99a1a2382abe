import { appendFile, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type DefinedAgent, defineAgent, defineTool } from 'perdure';
import { z } from 'zod';

// All workers use the same file: `verify` must look where `execute` wrote.
const FILE = process.env['TASKS_FILE'] ?? fileURLToPath(new URL('tasks.jsonl', import.meta.url));

const addTask = defineTool({
  description: 'Add a task to the list',
  inputSchema: z.object({ title: z.string() }),
  // It must not happen twice: after a crash, `verify` checks whether the call happened.
  effect: 'mutate',
  execute: async ({ title }, { idempotencyKey }) => {
    await appendFile(FILE, `${JSON.stringify({ key: idempotencyKey, title })}\n`);
    return { added: title };
  },
  verify: async ({ title }, { idempotencyKey }) => {
    const tasks = await readFile(FILE, { encoding: 'utf8', flag: 'a+' });
    return tasks.includes(idempotencyKey)
      ? { outcome: 'landed', output: { added: title } }
      : { outcome: 'absent' };
  },
});

export const clerk: DefinedAgent = defineAgent({
  name: 'clerk',
  model: `openai:${process.env['OPENAI_MODEL'] ?? 'gpt-5-mini'}`,
  instructions: 'You keep the task list of the user. Add what they ask for, then answer in one sentence.',
  tools: { addTask },
});
