import { type Command, Option } from 'commander';
import type { SessionSummary, Sessions } from '../../client/index.ts';
import { PerdureError } from '../../contract/errors.ts';
import { inChunks } from '../../temporal/store-content.ts';
import type { Cli } from '../cli.ts';
import { count } from '../input.ts';
import { clean } from '../terminal.ts';

interface Options {
  agent?: string;
  status?: string;
  tenant?: string;
  limit: number;
}

const WAITING: ReadonlySet<string> = new Set(['approval', 'unknown_effect', 'waiting', 'paused']);

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
    .summary('list sessions')
    .description(
      'List sessions, newest first. The list can lag by a second. A session is unknown until a worker has taken it, or ' +
        'until its next model call if the search attributes were not registered then.',
    )
    .option('--agent <name>', 'only of this agent')
    .addOption(new Option('--status <status>', 'only in this status').choices(STATUSES))
    .option('--tenant <name>', 'only of this tenant')
    .option('--limit <count>', 'at most this many', count, 50)
    .action(async ({ limit, ...filter }: Options) => {
      const { sessions } = await cli.connect();
      const rows: string[][] = [];
      const items: (SessionSummary & { waits: string | null })[] = [];
      try {
        const found: SessionSummary[] = [];
        for await (const session of sessions.list({ ...filter, limit })) found.push(session);
        await inChunks([...found.entries()], async ([index, session]) => {
          const waits = await waitsOf(sessions, session);
          const { id, agent, status, tenant, taskQueue, startedAt, closedAt } = session;
          items[index] = { ...session, waits };
          const doing = waits === null ? status : `${status}: ${waits}`;
          rows[index] = [id, agent ?? '-', doing, tenant ?? '-', taskQueue, startedAt, closedAt ?? '-'].map(
            clean,
          );
        });
        if (cli.terminal.json) for (const item of items) cli.terminal.item(item, () => null);
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
        ['ID', 'AGENT', 'STATUS', 'TENANT', 'QUEUE', 'STARTED', 'CLOSED'],
        ...rows,
      ]);
      cli.terminal.write([cli.terminal.style('bold', head), ...lines, ''].join('\n'));
    });
}

/** What a session waits for, in a few words; `null` if it does not wait, or cannot be read. */
async function waitsOf(sessions: Sessions, { id, status, closedAt }: SessionSummary): Promise<string | null> {
  if (closedAt !== null || !WAITING.has(status)) return null;
  const view = await sessions
    .get(id)
    .state()
    .catch(() => null);
  if (view === null) return null;
  const queued = view.queued === 0 ? [] : [`${view.queued} queued`];
  const calls = view.pending.map(({ tool }) => tool);
  const why = view.wait?.reason ?? (view.paused === null ? calls.join(', ') : `by ${view.paused.by}`);
  return [why, ...queued].filter((part) => part !== '').join(', ') || null;
}

/** Recognises the server's error for a search attribute that is not registered. */
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
