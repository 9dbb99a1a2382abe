import { type Command, Option } from 'commander';
import { PerdureError } from '../../contract/errors.ts';
import type { Cli } from '../cli.ts';
import { count } from '../input.ts';
import { clean } from '../terminal.ts';

interface Options {
  agent?: string;
  status?: string;
  tenant?: string;
  limit: number;
}

const STATUSES = [
  'active',
  'approval',
  'unknown_effect',
  'waiting',
  'paused',
  'unknown',
  'completed',
  'cancelled',
  'failed',
  'terminated',
];

/** `perdure ls`: sessions, newest first. */
export function ls(program: Command, cli: Cli): void {
  program
    .command('ls')
    .description(
      'list sessions, newest first; the list may lag behind by a second. A session is unknown until a worker has taken ' +
        'it up, and stays so when the search attributes were not registered then: perdure show says what it does',
    )
    .option('--agent <name>', 'of this agent')
    .addOption(new Option('--status <status>', 'in this state').choices(STATUSES))
    .option('--tenant <name>', 'of this tenant')
    .option('--limit <count>', 'at most this many', count, 50)
    .action(async ({ limit, ...filter }: Options) => {
      const { sessions } = await cli.connect();
      const rows: string[][] = [];
      try {
        for await (const session of sessions.list({ ...filter, limit })) {
          const { id, agent, status, tenant, startedAt, closedAt } = session;
          if (cli.terminal.json) cli.terminal.item(session, () => null);
          rows.push([id, agent ?? '-', status, tenant ?? '-', startedAt, closedAt ?? '-'].map(clean));
        }
      } catch (error) {
        throw unregistered(error) ?? error;
      }
      if (cli.terminal.json) return;
      if (rows.length === 0) {
        cli.terminal.progress('no sessions');
        return;
      }
      const { table } = await import('../render.ts');
      const [head = '', ...lines] = table([
        ['ID', 'AGENT', 'STATUS', 'TENANT', 'STARTED', 'CLOSED'],
        ...rows,
      ]);
      cli.terminal.write([cli.terminal.style('bold', head), ...lines, ''].join('\n'));
    });
}

/** The server's words for a search attribute that nobody has registered. */
function unregistered(error: unknown): PerdureError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { details } = at as { details?: unknown };
    if (typeof details !== 'string' || !/search attribute|column name/i.test(details)) continue;
    return new PerdureError(
      'INVALID_ARGUMENT',
      `The server cannot filter by this: ${details}. Register the search attributes: perdure setup`,
      { cause: error },
    );
  }
  return undefined;
}
