/** The parts of the demo: a Temporal server, the payments service, a model endpoint, workers, and a client. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { SESSION_SEARCH_ATTRIBUTES, type ServerHandle, startServer } from '../../src/server/index.ts';
import { BUDGET } from './agents.ts';
import { Processes, ROOT, type Running } from './processes.ts';
import type { Story } from './story.ts';

export interface StageOptions {
  /** Everything keeps running after the play, until the signal fires. */
  readonly keep: boolean;
  /** The script is the model, whatever the environment names. */
  readonly scripted: boolean;
}

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
 * Sets the stage, hands it to `play`, and always clears it. Its files stay on disk, for inspection, only if `play` fails or
 * returns false.
 *
 * @param signal - fires when the demo is to end at once.
 * @returns what `play` answered
 */
export async function onStage(
  story: Story,
  signal: AbortSignal,
  options: StageOptions,
  play: (stage: Stage, signal: AbortSignal) => Promise<boolean>,
): Promise<boolean> {
  const parent = join(ROOT, '.perdure');
  mkdirSync(parent, { recursive: true });
  const dir = mkdtempSync(join(parent, 'demo-'));
  const broken = new AbortController();
  const either = AbortSignal.any([signal, broken.signal]);
  const processes = new Processes(dir, (error) => broken.abort(error));
  const open: { server?: ServerHandle; connection?: Connection } = {};
  let failed = false;
  try {
    const holds = await orAborted(either, async () => {
      const stage = await setUp(story, dir, processes, open, options.scripted ? null : realModel());
      return play(stage, either);
    });
    failed = !holds;
    if (options.keep) {
      story.end('Everything keeps running until Ctrl-C.');
      if (!either.aborted) await once(either, 'abort');
      broken.signal.throwIfAborted();
    } else {
      story.end('Everything ends now; with `npm run demo -- --keep` it keeps running.');
    }
    return holds;
  } catch (error) {
    failed ||= !signal.aborted;
    throw error;
  } finally {
    await open.connection?.close();
    await processes.stop();
    await open.server?.stop();
    if (failed) console.error(`\nThe ledger and the logs are in ${relative(process.cwd(), dir)}`);
    else await rm(dir, { recursive: true, force: true });
  }
}

async function setUp(
  story: Story,
  dir: string,
  processes: Processes,
  open: { server?: ServerHandle; connection?: Connection },
  real: RealModel | null,
): Promise<Stage> {
  if (real !== null) {
    const { variable, url } = real;
    story.step(`${variable} is set: a real model is asked, at ${url}, which may cost money.`, 'yellow');
    story.detail(
      `At most ${BUDGET.turns} replies and ${BUDGET.tokens} tokens. Without: npm run demo -- --scripted`,
    );
  }
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
  story.step(`Temporal server: pid ${server.pid}, ${server.address}, web UI ${server.uiUrl ?? 'off'}`);

  const ledger = join(dir, 'ledger.jsonl');
  const recordFile = join(dir, 'model-calls.jsonl');
  const [payments, model] = await Promise.all([
    processes.start('payments', 'examples/payments/server.ts', ['--ledger', ledger]),
    real === null
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
    model === null ? `model: ${real?.url}` : `model: pid ${model.pid}, scripted, speaks OpenAI's protocol`,
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

interface RealModel {
  /** The variable that names it. */
  readonly variable: string;
  readonly url: string;
}

/** The model that the environment names, if it names one. */
function realModel(): RealModel | null {
  const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
  if (url) return { variable: 'OPENAI_BASE_URL', url };
  return key ? { variable: 'OPENAI_API_KEY', url: 'OpenAI' } : null;
}

async function orAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  return new Promise<T>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    work().then(resolve, reject);
  });
}
