/**
 * Agents whose results are large: the module that worker processes load. `VALUES` names the folder of the store and the
 * effects.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { DirectoryValues, defineAgent, defineTool, type SessionWorkerOptions } from '../../src/index.ts';
import { breakpoint } from '../../src/testing/index.ts';

const folder = process.env['VALUES'] ?? '';
const ledger = join(folder, 'effects');

/** What has happened: the keys of the effects. */
export function effectsIn(place: string): string[] {
  const path = join(place, 'effects');
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
}

export const LARGE: string = 'A large report. '.repeat(20_000);

/** A store with breakpoints before it reads, and before and after it stores. It is down while the folder has a file `down`. */
class HeldValues extends DirectoryValues {
  override async get(...args: Parameters<DirectoryValues['get']>): ReturnType<DirectoryValues['get']> {
    await breakpoint('fetching');
    return super.get(...args);
  }

  override async put(...args: Parameters<DirectoryValues['put']>): Promise<void> {
    await breakpoint('storing');
    if (existsSync(join(folder, 'down'))) throw new Error('the disk is gone');
    await super.put(...args);
    await breakpoint('stored');
  }
}

const inputSchema = z.object({});
const order = defineTool({
  inputSchema,
  settle: '100ms',
  timeout: '2s',
  execute: async (_, { idempotencyKey }) => {
    appendFileSync(ledger, `${idempotencyKey}\n`);
    return LARGE;
  },
  verify: async (_, { idempotencyKey }) =>
    effectsIn(folder).includes(idempotencyKey) ? { outcome: 'landed', output: LARGE } : { outcome: 'absent' },
});
const look = defineTool({ inputSchema, effect: 'read', execute: async () => LARGE });

export const large: ReturnType<typeof defineAgent> = defineAgent({
  name: 'large',
  model: 'any:model',
  instructions: 'Call the tools.',
  tools: { order, look },
});

/** Is sent files. */
export const viewer: ReturnType<typeof defineAgent> = defineAgent({
  name: 'viewer',
  model: 'any:model',
  instructions: 'Look at the picture.',
  heartbeat: '2s',
});

export const workerOptions: Partial<SessionWorkerOptions> = {
  values: new HeldValues(join(folder, 'values')),
};
