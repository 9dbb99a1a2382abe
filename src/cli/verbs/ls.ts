import { type Command, Option } from 'commander';
import type { SessionSummary, Sessions } from '../../client/index.ts';
import { PerdureError } from '../../contract/errors.ts';
import { needsPerson, WAITING_PHASES } from '../../contract/state.ts';
import { inChunks } from '../../temporal/store-content.ts';
import type { Cli } from '../cli.ts';
import { count } from '../input.ts';
import { clean } from '../terminal.ts';

interface Options {
  agent?: string;
  status?: string;
  tenant?: string;
  prefix?: string;
  limit: number;
}

type Listed = SessionSummary & { waits: string | null };

const STATUSES = ['active', ...WAITING_PHASES, 'unknown', 'completed', 'cancelled', 'failed', 'terminated'];

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
    .option('--prefix <text>', 'only ids that begin with this')
    .option('--limit <count>', 'at most this many', count, 50)
    .action(async ({ limit, ...filter }: Options) => {
      const { sessions } = await cli.connect();
      const items: Listed[] = [];
      try {
        const found: SessionSummary[] = [];
        for await (const session of sessions.list({ ...filter, limit })) found.push(session);
        await inChunks([...found.entries()], async ([index, session]) => {
          const waits = await waitsOf(sessions, session);
          items[index] = { ...session, waits };
        });
        if (cli.terminal.json) for (const item of items) cli.terminal.item(item, () => null);
      } catch (error) {
        throw unregistered(error) ?? error;
      }
      if (cli.terminal.json) return;
      if (items.length === 0) {
        cli.terminal.progress('no sessions');
        return;
      }
      const { table } = await import('../render.ts');
      const [head = '', ...lines] = table(rowsOf(items, cli.taskQueue, filter.tenant));
      cli.terminal.write([cli.terminal.style('bold', head), ...lines, ''].join('\n'));
    });
}

/** The rows of the table. A column that tells nothing is left out, so that the others fit a terminal. */
function rowsOf(items: readonly Listed[], taskQueue: string, tenant: string | undefined): string[][] {
  const now = Date.now();
  const withTenant = tenant === undefined && items.some((item) => item.tenant !== null);
  const withQueue = items.some((item) => item.taskQueue !== taskQueue);
  const head = [
    'ID',
    'AGENT',
    ...(withTenant ? ['TENANT'] : []),
    ...(withQueue ? ['QUEUE'] : []),
    'AGE',
    'STATUS',
  ];
  const rows = items.map((item) => {
    const { id, agent, status, waits, startedAt, closedAt } = item;
    const doing = waits === null ? status : `${status}: ${waits}`;
    return [
      id,
      agent ?? '-',
      ...(withTenant ? [item.tenant ?? '-'] : []),
      ...(withQueue ? [item.taskQueue] : []),
      age(now - Date.parse(startedAt)),
      closedAt === null ? doing : `${doing} ${age(now - Date.parse(closedAt))} ago`,
    ].map(clean);
  });
  return [head, ...rows];
}

/** A time span in its largest unit. */
function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** What a session waits for, in a few words; `null` if it does not wait, or cannot be read. */
async function waitsOf(sessions: Sessions, { id, status, closedAt }: SessionSummary): Promise<string | null> {
  if (closedAt !== null || !needsPerson(status)) return null;
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
