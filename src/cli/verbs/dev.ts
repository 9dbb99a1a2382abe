import { createServer } from 'node:net';
import { relative } from 'node:path';
import type { Command } from 'commander';
import { invalid, messageOf, PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import { type Cli, type Connected, OWN_VALUES } from '../cli.ts';
import { port as portOf } from '../input.ts';
import { serveHere } from '../serving.ts';
import type { SupervisorEvent } from '../supervisor.ts';

/** Temporal's own port, so that other tools find the server. */
const TEMPORAL_PORT = 7233;
/** The port of `perdure serve`. */
const CONSOLE_PORT = 7280;

/** `perdure dev`: a server, a worker and the console in one terminal. */
export function dev(program: Command, cli: Cli): void {
  program
    .command('dev')
    .summary('run a Temporal server, a worker and the console')
    .description(
      'Run a Temporal server, a worker and the console in one terminal. The worker restarts when its files change.',
    )
    .argument('[module]', 'JavaScript or TypeScript (default: agents.ts, agents.js, agents/index.ts, …)')
    .option('--port <number>', "the server's port (default: 7233, or a free one if it is taken)", portOf)
    .option('--no-ui', "do not start Temporal's web UI")
    .addHelpText(
      'after',
      '\nThe server keeps its data in .perdure. If a server is configured, or already\nruns in this directory, dev uses it.',
    )
    .action(async (module: string | undefined, { ui, port }: { ui: boolean; port?: number }) => {
      const { agentsPath } = await import('../load-agents.ts');
      const path = agentsPath(module);
      // A download or a build ends at the first Ctrl-C; a server that has begun ends with this process, in order.
      const connected = await startDevServer(cli, ui, port);
      const stop = cli.untilInterrupted();
      tellServer(cli, connected);
      const page = await serveHere(cli, connected, (await ifFree(CONSOLE_PORT)) ?? 0);
      cli.terminal.item({ type: 'console', url: page.link }, () => `console     ${page.link}`);
      const { supervise } = await import('../supervisor.ts');
      const { connectionOptions, namespace, source } = connected.server;
      const found = source === 'env' || source === 'config-file';
      // The worker gets the server's address, and so does not know that it is the server of this directory.
      if (source === 'embedded') process.env['PERDURE_VALUES'] ||= OWN_VALUES;
      const args = [
        'worker',
        path,
        '--supervised',
        '--task-queue',
        cli.taskQueue,
        '--namespace',
        namespace,
        ...(cli.dataConverterModule === undefined ? [] : ['--data-converter', cli.dataConverterModule]),
        // A configured server may need TLS and a key: the worker reads the configuration, too.
        ...(found ? [] : ['--address', connectionOptions.address]),
      ];
      const onEvent = (event: SupervisorEvent): void => tellWorker(cli, event);
      const { server } = connected.server;
      let lost = false;
      void server?.ended().then(() => {
        if (stop.aborted) return;
        lost = true;
        // A worker without a server cannot do anything: it ends, too.
        cli.interrupt();
      });
      await supervise({ args, module: path, stdout: cli.terminal.json ? 2 : 'inherit', onEvent }, stop);
      await page.close();
      if (lost) {
        const said = `See ${server?.logFile}. The sessions are safe in .perdure: run perdure dev again`;
        throw new PerdureError(
          'SERVER_UNAVAILABLE',
          `The Temporal server of this terminal has ended. ${said}`,
        );
      }
      cli.terminal.item({ type: 'stopped' }, () => 'stopped');
    });
}

/** The port, or `undefined` when it is taken. */
async function ifFree(port: number): Promise<number | undefined> {
  const probe = createServer();
  const free = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (!free) return undefined;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function startDevServer(cli: Cli, ui: boolean, typed: number | undefined): Promise<Connected> {
  const port = typed ?? (await ifFree(TEMPORAL_PORT));
  const { ensureSearchAttributes, SESSION_SEARCH_ATTRIBUTES } = await import('../../server/index.ts');
  let started = false;
  const connected = await cli.terminal.wait('starting Temporal', (tell) =>
    cli.connect({
      embedded: { ui, searchAttributes: SESSION_SEARCH_ATTRIBUTES, ...defined({ port }) },
      onProgress: (line) => (started ? cli.terminal.warn(line) : tell(line)),
    }),
  );
  started = true;
  const { connection, connectionOptions, namespace, server, sourceName } = connected.server;
  const vain = typed !== undefined ? '--port' : ui ? null : '--no-ui';
  if (server === null && vain !== null) {
    const used = `${connectionOptions.address} (${sourceName}) is used`;
    throw invalid(vain, `no server is started here: ${used}. Leave the option out`);
  }
  if (server === null) {
    await ensureSearchAttributes(connection, namespace, SESSION_SEARCH_ATTRIBUTES).catch((error: unknown) =>
      cli.terminal.warn(`cannot register the search attributes, so ls cannot filter: ${messageOf(error)}`),
    );
  }
  return connected;
}

function tellServer(cli: Cli, { server }: Connected): void {
  const { connectionOptions, namespace, sourceName } = server;
  const { address } = connectionOptions;
  const ui = server.server?.uiUrl ?? null;
  const event = { type: 'server', address, namespace, from: sourceName, ui, taskQueue: cli.taskQueue };
  cli.terminal.item(event, () =>
    [
      `server      ${address}, namespace ${namespace} (${sourceName})`,
      ...(ui === null ? [] : [`web UI      ${ui}`]),
      `task queue  ${cli.taskQueue}`,
    ].join('\n'),
  );
}

function tellWorker(cli: Cli, event: SupervisorEvent): void {
  cli.terminal.item(event, () => {
    switch (event.type) {
      case 'ready': {
        const [agent = ''] = event.agents;
        return `ready       ${event.agents.join(', ')} (pid ${event.pid})\n  next: ${command('start', agent, 'Hello', '--follow')}`;
      }
      case 'changed':
        return `changed     ${relative('', event.file)}`;
      case 'ended':
        return event.waits
          ? `ended       the worker failed to start (${event.how}); it restarts when a file changes`
          : `ended       the worker died (${event.how}); it restarts`;
      default:
        return event satisfies never;
    }
  });
}
