/** The parts of the demo: a Temporal server, the payments service, a model endpoint, workers, and a client. */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { SESSION_SEARCH_ATTRIBUTES, type ServerHandle, startServer } from '../../src/server/index.ts';
import { Processes, ROOT, type Running } from './processes.ts';
import type { Story } from './story.ts';

/** What the story is played on. */
export interface Stage {
  readonly dir: string;
  readonly server: ServerHandle;
  readonly client: Client;
  readonly paymentsUrl: string;
  /** Where the scripted endpoint writes what it was asked; `null` when the environment names a real model. */
  readonly modelRecord: string | null;
  startWorker(name: string): Promise<Running>;
}

/**
 * Sets the stage, hands it to `play`, and clears it whatever happens. What it wrote stays on disk only after a
 * failure, for its logs.
 *
 * @param signal - fires when the demo is to end at once.
 */
export async function onStage<T>(
  story: Story,
  signal: AbortSignal,
  play: (stage: Stage, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const parent = join(ROOT, '.perdure');
  mkdirSync(parent, { recursive: true });
  const dir = mkdtempSync(join(parent, 'demo-'));
  const broken = new AbortController();
  const either = AbortSignal.any([signal, broken.signal]);
  const processes = new Processes(dir, (error) => broken.abort(error));
  const open: { server?: ServerHandle; connection?: Connection } = {};
  let done = false;
  try {
    const result = await orAborted(either, async () => {
      const stage = await setUp(story, dir, processes, open);
      return play(stage, either);
    });
    done = true;
    return result;
  } finally {
    await open.connection?.close();
    await processes.stop();
    await open.server?.stop();
    if (done || signal.aborted) await rm(dir, { recursive: true, force: true });
    else console.error(`\nThe logs are in ${relative(process.cwd(), dir)}`);
  }
}

async function setUp(
  story: Story,
  dir: string,
  processes: Processes,
  open: { server?: ServerHandle; connection?: Connection },
): Promise<Stage> {
  story.step(`Temporal server: starting, with its data in ${relative(process.cwd(), dir)}`);
  const server = await startServer({
    dir,
    ui: true,
    searchAttributes: SESSION_SEARCH_ATTRIBUTES,
    onProgress: (line) => story.detail(line),
  });
  open.server = server;
  const connection = await Connection.connect({ address: server.address });
  open.connection = connection;
  story.step(`Temporal server: ${server.address}, web UI ${server.uiUrl ?? 'off'}`);

  const ledger = join(dir, 'ledger.jsonl');
  const recordFile = join(dir, 'model-calls.jsonl');
  const scripted = !process.env['OPENAI_API_KEY'] && !process.env['OPENAI_BASE_URL'];
  const [payments, model] = await Promise.all([
    processes.start('payments', 'examples/payments/server.ts', ['--ledger', ledger]),
    scripted
      ? processes.start('model', 'src/testing/scripted-model/main.ts', [
          '--script',
          'examples/demo/script.ts',
          '--record',
          recordFile,
        ])
      : null,
  ]);
  story.step(`payments service: pid ${payments.pid}, with a ledger of its own on disk`);
  story.step(
    model === null
      ? `model: ${process.env['OPENAI_BASE_URL'] || 'OpenAI'}, as the environment says`
      : `model: pid ${model.pid}, scripted, speaks OpenAI's protocol (OPENAI_API_KEY or OPENAI_BASE_URL: a real one)`,
  );
  const env: Record<string, string> = {
    TEMPORAL_ADDRESS: server.address,
    PAYMENTS_URL: payments.url,
    ...(model === null ? {} : { OPENAI_BASE_URL: model.url }),
  };
  return {
    dir,
    server,
    client: new Client({ connection, namespace: server.namespace }),
    paymentsUrl: payments.url,
    modelRecord: model === null ? null : recordFile,
    startWorker: (name) => processes.start(name, 'examples/demo/worker.ts', [], env),
  };
}

async function orAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  return new Promise<T>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    work().then(resolve, reject);
  });
}
