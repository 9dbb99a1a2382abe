import type { Command } from 'commander';
import type { VersionSummary, WorkerVersion } from '../../client/index.ts';
import { invalid, isPerdureError, PerdureError } from '../../contract/errors.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { clean } from '../terminal.ts';

const DEPLOYMENT = ['--deployment <name>', 'the deployment, if several have such a version'] as const;

interface MoveOptions {
  to: string;
  deployment?: string;
  all?: true;
  yes?: true;
}

/** `perdure versions`: which version of the workers runs which sessions. */
export function versions(program: Command, cli: Cli): void {
  const group = program
    .command('versions')
    .summary('list worker versions, move sessions')
    .description(
      'List the versions of the workers, how many sessions run on each, and which still drain. Move sessions to a ' +
        'version. A worker has a version when it was started with --deployment.',
    );
  group
    .command('ls', { isDefault: true })
    .description('list versions and their sessions')
    .action(() => list(cli));
  group
    .command('set-current')
    .description('let new sessions, and those that are not pinned, run on a version')
    .argument('<build>', 'build id of the version')
    .option(...DEPLOYMENT)
    .action(async (buildId: string, { deployment }: { deployment?: string }) => {
      const { setCurrentVersion } = await import('../../client/index.ts');
      const { client } = await cli.connect();
      const version = await chosen(cli, buildId, deployment);
      await setCurrentVersion(client, version);
      cli.terminal.result(
        { ...version, status: 'current' },
        () => `${clean(nameOf(version))} is current: new sessions start on it`,
      );
    });
  group
    .command('move')
    .description(
      'Move sessions to a version: wake each, and wait until the version has completed a task of it. Repeat it after a failure.',
    )
    .argument('[session...]', 'ids of sessions')
    .requiredOption('--to <build>', 'build id of the version')
    .option(...DEPLOYMENT)
    .option('--all', 'every running session of the deployment')
    .option('--yes', 'with --all: do not ask for confirmation')
    .action((ids: string[], options: MoveOptions) => move(cli, ids, options));
}

async function list(cli: Cli): Promise<void> {
  const { terminal } = cli;
  const { listVersions } = await import('../../client/index.ts');
  const { client } = await cli.connect();
  const found = await terminal.wait('reading versions', () => listVersions(client));
  const left = found.versions.filter(({ status, sessions }) => status === 'draining' && sessions > 0);
  const commands = left.flatMap(({ deployment }) => {
    const current = found.versions.find(
      (version) => version.deployment === deployment && version.status === 'current',
    );
    return current === undefined
      ? []
      : [command('versions', 'move', '--to', current.buildId, '--deployment', deployment, '--all')];
  });
  const { table } = await import('../render.ts');
  terminal.result({ ...found, commands: [...new Set(commands)] }, () => {
    if (found.versions.length === 0)
      return `no worker has a version; ${found.unversioned} sessions run without one\n  next: perdure worker --help`;
    const [head = '', ...lines] = table([
      ['DEPLOYMENT', 'BUILD', 'STATUS', 'SESSIONS', 'WORKERS'],
      ...found.versions.map(({ deployment, buildId, status, sessions, workers }) =>
        [deployment, buildId, status, String(sessions), String(workers.length)].map(clean),
      ),
    ]);
    return [
      terminal.style('bold', head),
      ...lines,
      ...(found.unversioned > 0 ? [`${found.unversioned} sessions run without a version`] : []),
      ...[...new Set(commands)].map((line) => `  next: ${clean(line)}`),
    ].join('\n');
  });
}

async function move(cli: Cli, ids: string[], { to, deployment, all, yes }: MoveOptions): Promise<void> {
  const { terminal } = cli;
  if (all && ids.length > 0) throw invalid('session', 'leave out the sessions, or leave out --all');
  if (!all && ids.length === 0) throw invalid('session', 'name one or more, or add --all');
  if (!all && yes) throw invalid('--yes', 'needs --all');
  const [{ moveSession }, { inChunks }, { client }] = await Promise.all([
    import('../../client/index.ts'),
    import('../../temporal/store-content.ts'),
    cli.connect(),
  ]);
  const version = await chosen(cli, to, deployment);
  const sessions = all ? await runningOf(cli, version) : ids;
  if (all && cli.attended && !yes && sessions.length > 0) {
    const word = await cli.ask(
      `Move the ${sessions.length} sessions of ${version.deployment} to ${to}? [y/N] `,
    );
    if (!/^y(es)?$/i.test(word)) {
      terminal.progress('nothing was moved');
      process.exitCode = EXIT.failure;
      return;
    }
  }
  let [there, failed] = [0, 0];
  await inChunks(sessions, async (sessionId) => {
    try {
      const result = await moveSession(client, sessionId, version);
      if (!result.moved) there += 1;
      const from = result.from === null ? 'no version' : result.from.buildId;
      terminal.item(result, () =>
        clean(result.moved ? `moved ${sessionId} from ${from} to ${to}` : `${sessionId} is on ${to} already`),
      );
    } catch (error) {
      // A problem with one session, such as a missing worker, need not stop the others.
      if (!isPerdureError(error) || error.code === 'SERVER_UNAVAILABLE') throw error;
      // A session that has ended since it was listed needs no version.
      if (all && error.code === 'SESSION_CLOSED') return;
      failed += 1;
      const { code, message, details } = error;
      const next = nextOf(error, sessionId, version);
      terminal.item({ sessionId, moved: false, error: { code, message, details, next } }, () =>
        clean(`did not move ${sessionId}: ${code}: ${message}\n  next: ${next}`),
      );
    }
  });
  if (failed > 0) process.exitCode = EXIT.failure;
  terminal.progress(`${sessions.length - there - failed} moved, ${there} were there, ${failed} did not move`);
}

/** The command that helps a session that did not move. */
function nextOf({ code }: PerdureError, sessionId: string, { deployment, buildId }: WorkerVersion): string {
  const version = ['--deployment', deployment];
  if (code === 'NO_WORKER') return command('worker', ...version, '--build-id', buildId);
  if (code === 'CONFLICT') return command('versions', 'set-current', buildId, ...version);
  if (code === 'SESSION_NOT_FOUND') return command('ls');
  return command('show', sessionId);
}

/** The version with a build id. @throws PerdureError `INVALID_ARGUMENT` when none or several have it */
async function chosen(cli: Cli, buildId: string, deployment: string | undefined): Promise<VersionSummary> {
  const { listVersions } = await import('../../client/index.ts');
  const { client } = await cli.connect();
  const { versions: known } = await listVersions(client);
  const found = known.filter(
    (version) =>
      version.buildId === buildId && (deployment === undefined || version.deployment === deployment),
  );
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  const message =
    first === undefined
      ? `build: no worker has registered version ${buildId}${deployment === undefined ? '' : ` of ${deployment}`}. Known versions: ${known.map(nameOf).join(', ') || 'none'}`
      : `--deployment: name one of those that have a version ${buildId}: ${found.map((version) => version.deployment).join(', ')}`;
  throw new PerdureError('INVALID_ARGUMENT', message, { details: { commands: ['perdure versions'] } });
}

/**
 * The running sessions of a deployment. Includes sessions that are on the version already: an interrupted move may have
 * left them there.
 */
async function runningOf(cli: Cli, { deployment }: WorkerVersion): Promise<string[]> {
  const { quoted, runningSessions } = await import('../../temporal/visibility.ts');
  const { client } = await cli.connect();
  const query = runningSessions(`TemporalWorkerDeployment = ${quoted('deployment', deployment)}`);
  const ids: string[] = [];
  for await (const { workflowId } of client.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

function nameOf({ deployment, buildId }: WorkerVersion): string {
  return `${deployment}:${buildId}`;
}
