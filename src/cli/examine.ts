/** The checks of `perdure doctor`. */
import type { Client } from '@temporalio/client';
import { isPerdureError, messageOf } from '../contract/errors.ts';
import {
  type ConnectedServer,
  findTemporalBinary,
  resolveServer,
  SESSION_SEARCH_ATTRIBUTES,
} from '../server/index.ts';
import { command } from '../session/commands.ts';
import { pollersOf } from '../temporal/pollers.ts';
import type { Cli } from './cli.ts';
import { stuckSessions } from './stuck-sessions.ts';

/** A check, its result, and what to do. */
export interface Check {
  name: 'node' | 'temporal' | 'server' | 'namespace' | 'search attributes' | 'workers' | 'sessions';
  ok: boolean;
  detail: string;
  /** The command to type next, or `null`. */
  next: string | null;
}

const NODE = [20, 19] as const;

/** Runs all checks. Without a server, those that need one are left out. */
export async function examine(cli: Cli): Promise<Check[]> {
  const checks: Check[] = [nodeCheck()];
  let server: ConnectedServer | null = null;
  try {
    server = (await cli.connect()).server;
  } catch (error) {
    checks.push(await binaryCheck(true), await unreachable(cli, error));
    return checks;
  }
  const { connectionOptions, namespace, source, sourceName } = server;
  const { address } = connectionOptions;
  checks.push(await binaryCheck(source === 'embedded'));
  checks.push(fine('server', `${address} answers (from ${sourceName})`));
  checks.push(fine('namespace', `${namespace} exists`));
  checks.push(await searchAttributesCheck(server), await workersCheck(server, cli.taskQueue));
  checks.push(await sessionsCheck((await cli.connect()).client, cli.taskQueue));
  return checks;
}

function fine(name: Check['name'], detail: string): Check {
  return { name, ok: true, detail, next: null };
}

function problem(name: Check['name'], detail: string, next: string): Check {
  return { name, ok: false, detail, next };
}

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const enough = major > NODE[0] || (major === NODE[0] && minor >= NODE[1]);
  return enough
    ? fine('node', process.version)
    : problem('node', `${process.version}; ${NODE.join('.')} or later is needed`, 'install a newer Node');
}

/** The binary is only needed for the dev server. */
async function binaryCheck(needed: boolean): Promise<Check> {
  try {
    const { path, version, source } = await findTemporalBinary({ download: false, build: false });
    return fine('temporal', `${version} (${source}: ${path})`);
  } catch (error) {
    if (!isPerdureError(error)) throw error;
    return needed
      ? problem('temporal', 'not installed; perdure dev downloads or builds it', 'perdure dev')
      : fine('temporal', 'not installed, and not needed: the server runs elsewhere');
  }
}

async function unreachable(cli: Cli, error: unknown): Promise<Check> {
  if (!isPerdureError(error)) throw error;
  if (error.code !== 'SERVER_UNAVAILABLE') {
    return problem('server', error.message, 'perdure doctor');
  }
  const { source } = await resolveServer(cli.serverOptions);
  const next =
    source === 'embedded' || source === 'default' ? 'perdure dev' : 'perdure doctor --address localhost:7233';
  return problem('server', error.message, next);
}

/** `INDEXED_VALUE_TYPE_KEYWORD` of Temporal's API. */
const KEYWORD = 2;

async function searchAttributesCheck({ connection, namespace }: ConnectedServer): Promise<Check> {
  const names = Object.keys(SESSION_SEARCH_ATTRIBUTES);
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    const [mistyped] = names.filter((name) => Number(customAttributes?.[name] ?? KEYWORD) !== KEYWORD);
    if (mistyped !== undefined) {
      const remove = `temporal operator search-attribute remove --namespace ${namespace} --name ${mistyped}`;
      return problem(
        'search attributes',
        `${mistyped} is not of type Keyword; ls cannot filter by it`,
        remove,
      );
    }
    const missing = names.filter((name) => customAttributes?.[name] === undefined);
    return missing.length === 0
      ? fine('search attributes', `${names.join(', ')} are registered`)
      : problem(
          'search attributes',
          `not registered: ${missing.join(', ')}; ls cannot filter by them`,
          'perdure setup',
        );
  } catch (error) {
    const reason = messageOf(error);
    return problem('search attributes', `cannot be read: ${reason}`, 'perdure setup');
  }
}

async function workersCheck({ connection, namespace }: ConnectedServer, taskQueue: string): Promise<Check> {
  const { workflow, activity, dead } = await pollersOf(connection.workflowService, namespace, taskQueue);
  const both = workflow.filter((identity) => activity.includes(identity));
  const died = dead.length === 0 ? '' : `; no longer alive: ${dead.join(', ')}`;
  return both.length > 0
    ? fine('workers', `${both.join(', ')} on task queue ${taskQueue}${died}`)
    : problem('workers', `no worker polls task queue ${taskQueue}${died}`, 'perdure worker');
}

async function sessionsCheck(client: Client, taskQueue: string): Promise<Check> {
  const { looked, stuck } = await stuckSessions(client, taskQueue);
  const [first] = stuck;
  if (first === undefined) return fine('sessions', `${looked} running, none is stuck`);
  const others = stuck.length > 1 ? ` (and ${stuck.length - 1} more)` : '';
  return problem(
    'sessions',
    `${stuck.length} of ${looked} running sessions are stuck: ${first.code}: ${first.message}${others}`,
    command('show', first.id),
  );
}
