import type { Command } from 'commander';
import type { Cli } from '../cli.ts';

/** `perdure setup`: registers the search attributes that `perdure ls` filters by. */
export function setup(program: Command, cli: Cli): void {
  program
    .command('setup')
    .summary('register the search attributes of sessions')
    .description(
      'Register the search attributes of sessions with the server, so that ls can filter. A running session gets them ' +
        'at its next model call. It is safe to repeat.',
    )
    .action(async () => {
      const { terminal } = cli;
      const { server } = await cli.connect();
      const { ensureSearchAttributes, SESSION_SEARCH_ATTRIBUTES } = await import('../../server/index.ts');
      const { connection, namespace } = server;
      const { address } = server.connectionOptions;
      const added = await terminal.wait('registering', () =>
        ensureSearchAttributes(connection, namespace, SESSION_SEARCH_ATTRIBUTES),
      );
      const present = Object.keys(SESSION_SEARCH_ATTRIBUTES).filter((name) => !added.includes(name));
      terminal.result({ address, namespace, added, present }, () =>
        [
          `namespace ${namespace} at ${address}`,
          ...added.map((name) => `  added   ${name} (${SESSION_SEARCH_ATTRIBUTES[name] ?? ''})`),
          ...present.map((name) => `  present ${name}`),
          '  next: perdure worker',
        ].join('\n'),
      );
    });
}
