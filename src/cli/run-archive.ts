/** The process of an archive's exporter. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { createArchiveWorker } from '../archive/door.ts';
import { archiveStatus, DEFAULT_ARCHIVE, openArchive } from '../archive/index.ts';
import { archiveWorkflowId } from '../contract/archive.ts';
import { PerdureError } from '../contract/errors.ts';
import { isPostgresUrl } from '../postgres/index.ts';
import { findExecution } from '../temporal/executions.ts';
import { openConnection } from '../worker/index.ts';
import { problems } from './archives.ts';
import type { Cli } from './cli.ts';
import { clean } from './terminal.ts';

/** Pause between two looks at the exporter's status, in milliseconds. */
const LOOK_MS = 2_000;

/**
 * Runs the exporter until it is interrupted.
 *
 * @throws PerdureError `INVALID_ARGUMENT` when the file's directory does not exist; `SESSION_CLOSED` when the exporter
 * was ended from outside
 */
export async function runArchive(cli: Cli, path: string, name: string | undefined): Promise<void> {
  const stop = cli.untilInterrupted();
  const directory = dirname(resolve(path));
  // Without the directory, the exporter would retry for ever.
  if (!isPostgresUrl(path) && !existsSync(directory))
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `archive: the directory ${directory} does not exist. Create it`,
    );
  const { server, client } = await cli.connect();
  const { connectionOptions, namespace } = server;
  if (stop.aborted) return;
  // We handle signals: the runtime's own handlers would end the worker a second time.
  Runtime.install({ logger: new DefaultLogger('WARN'), shutdownSignals: [] });
  const connection = await openConnection(connectionOptions);
  try {
    const named = name === undefined ? {} : { name };
    const worker = await createArchiveWorker({
      connection,
      namespace,
      path,
      ...named,
      ...(await cli.dataConverter()),
    });
    const running = worker.run();
    const end = (): void => (worker.getState() === 'RUNNING' ? worker.shutdown() : undefined);
    stop.addEventListener('abort', end, { once: true });
    if (stop.aborted) end();
    const { address } = connectionOptions;
    // `place` is the path, or the URL without its secrets.
    const { place } = openArchive(path);
    const ready = { type: 'ready', file: place, namespace, address, pid: process.pid };
    cli.terminal.item(ready, () =>
      clean(`archiving into ${place} (namespace ${namespace} at ${address}, pid ${process.pid})`),
    );
    const id = archiveWorkflowId(name ?? DEFAULT_ARCHIVE);
    let told = '';
    while (!stop.aborted) {
      await delay(LOOK_MS, undefined, { signal: stop }).catch(() => undefined);
      const exporter = stop.aborted ? undefined : await findExecution(client, id).catch(() => undefined);
      if (exporter !== undefined && exporter?.running !== true) {
        end();
        await running;
        throw new PerdureError(
          'SESSION_CLOSED',
          `Somebody ended the exporter workflow ${id}. Start it again: perdure archive`,
        );
      }
      const status = stop.aborted ? null : await archiveStatus(client, name).catch(() => null);
      if (status === null) continue;
      const lines = problems(status);
      // Without the time and the attempts, which change all the time.
      const about = JSON.stringify([status.failure?.message ?? null, status.unreadable]);
      if (about === told) continue;
      if (lines.length > 0 || told !== '') {
        cli.terminal.item({ type: 'status', ...status }, () =>
          lines.length === 0 ? 'the problems are gone' : lines.map(clean).join('\n'),
        );
      }
      told = lines.length === 0 ? '' : about;
    }
    await running;
  } finally {
    await connection.close().catch(() => undefined);
  }
}
