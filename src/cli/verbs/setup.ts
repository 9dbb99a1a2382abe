import type { Command } from 'commander';
import type { Cli } from '../cli.ts';

/** `perdure setup`: what a server has to know before sessions can be listed by agent, status and tenant. */
export function setup(program: Command, cli: Cli): void {
  program
    .command('setup')
    .description(
      'register the search attributes of sessions with the server; safe to repeat. Before workers are started: they ' +
        'look once, and a session that began without the attributes stays without',
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
          ...(added.length === 0
            ? []
            : ['  workers that run have to be restarted; sessions that have begun stay without these']),
          '  next: perdure worker',
        ].join('\n'),
      );
    });
}
