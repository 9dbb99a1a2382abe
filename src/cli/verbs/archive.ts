import type { Command } from 'commander';
import type { ArchiveFileStatus } from '../../archive/index.ts';
import type { ArchiveStatus } from '../../contract/archive.ts';
import { isPerdureError, messageOf } from '../../contract/errors.ts';
import { isPostgresUrl } from '../../postgres/index.ts';
import { command } from '../../session/commands.ts';
import { ARCHIVE_HELP, archivePlace, openExisting, problems } from '../archives.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { clean } from '../terminal.ts';

interface Options {
  name?: string;
  status?: true;
}

/** `perdure archive`: stores checkpoints in an archive as they are made. */
export function archive(program: Command, cli: Cli): void {
  program
    .command('archive')
    .summary('copy all checkpoints into an archive')
    .description(
      "Copy the checkpoints of all sessions of the namespace into SQLite or PostgreSQL as they are made, beyond the namespace's " +
        'retention, until Ctrl-C or SIGTERM. After a restart it continues where it stopped.',
    )
    .argument('[archive]', `${ARCHIVE_HELP}; created if missing`)
    .option('--name <name>', 'name of this archive, if the namespace has several (default: default)')
    .option('--status', 'print how far the archive has come, and exit')
    .action(async (file: string | undefined, { name, status }: Options) => {
      const place = archivePlace(file);
      if (status) {
        await showStatus(cli, place, name);
        return;
      }
      const { runArchive } = await import('../run-archive.ts');
      await runArchive(cli, place, name);
    });
}

/** The command that starts the exporter again. It leaves out the environment's archive, and the secrets of a URL. */
function startCommand(path: string, shown: string, name: string | undefined): string {
  const place = path === process.env['PERDURE_ARCHIVE'] ? [] : [shown];
  return command('archive', ...place, ...(name === undefined ? [] : ['--name', name]));
}

async function showStatus(cli: Cli, path: string, name: string | undefined): Promise<void> {
  const { archiveStatus } = await import('../../archive/index.ts');
  const file = await openExisting(cli, path);
  let stored: ArchiveFileStatus | null = null;
  let problem: string | null = null;
  try {
    stored = await file.status();
  } catch (error) {
    problem = messageOf(error);
  } finally {
    await file.close().catch(() => undefined);
  }
  let exporter: ArchiveStatus | null = null;
  let silent = '';
  try {
    const { client } = await cli.connect();
    exporter = await archiveStatus(client, name);
  } catch (error) {
    if (!isPerdureError(error)) throw error;
    silent = `${error.message}\n  next: ${startCommand(path, isPostgresUrl(path) ? file.place : path, name)}`;
  }
  const upTo = stored?.upTo ?? exporter?.upTo ?? null;
  const lagMs = upTo === null ? null : Date.now() - Date.parse(upTo);
  if (problem !== null) process.exitCode = EXIT.unreachable;
  const { terminal } = cli;
  terminal.result({ file: file.place, ...stored, upTo, lagMs, problem, exporter }, () =>
    [
      stored === null
        ? `${file.place} cannot be read: ${problem}`
        : `${file.place}: ${stored.checkpoints} checkpoints of ${stored.sessions} sessions of namespace ${stored.namespace ?? '-'}`,
      upTo === null
        ? 'the first pass over all sessions is not complete'
        : `complete up to ${upTo}, ${((lagMs ?? 0) / 1_000).toFixed(1)} s ago`,
      ...(exporter === null ? [silent] : problems(exporter)),
    ]
      .map(clean)
      .join('\n'),
  );
}
