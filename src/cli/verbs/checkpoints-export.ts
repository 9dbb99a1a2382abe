import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { link, open, rename } from 'node:fs/promises';
import type { Command } from 'commander';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { messageOf, PerdureError } from '../../contract/errors.ts';
import { WORKFLOW } from '../../contract/names.ts';
import { openExisting } from '../archives.ts';
import type { Cli } from '../cli.ts';
import { ARCHIVE } from '../read-checkpoint.ts';
import { clean } from '../terminal.ts';

/** `perdure checkpoints export`: a session's past as a file. */
export function exportCheckpoints(group: Command, cli: Cli): void {
  group
    .command('export')
    .summary('write all checkpoints as lines of JSON')
    .description(
      'Write all checkpoints of a session as lines of JSON, oldest first. With --archive, also those that the server ' +
        'has deleted.',
    )
    .argument('<session>', 'id of the session')
    .argument('[file]', 'a new file (default: standard output)')
    .option(...ARCHIVE)
    .action(async (sessionId: string, named: string | undefined, { archive }: { archive?: string }) => {
      const { terminal } = cli;
      const file = named === '-' ? undefined : named;
      const checkpoints = await terminal.wait(`reading ${sessionId}`, () =>
        exportTo(cli, sessionId, file, archive),
      );
      if (file === undefined) return;
      terminal.result({ sessionId, file, checkpoints }, () =>
        clean(`wrote ${checkpoints} checkpoints of ${sessionId} to ${file}`),
      );
    });
}

async function exportTo(
  cli: Cli,
  sessionId: string,
  file: string | undefined,
  place: string | undefined,
): Promise<number> {
  cli.sessionId = sessionId;
  const archive = place === undefined ? undefined : await openExisting(cli, place);
  const { client } = await cli.connect();
  const [{ orNull }, { SessionCheckpoints }, { findExecution, reading }] = await Promise.all([
    import('../../temporal/index.ts'),
    import('../../checkpoints/session-checkpoints.ts'),
    import('../../temporal/executions.ts'),
  ]);
  const found = await reading(sessionId, () => findExecution(client, sessionId));
  const session = found?.type === WORKFLOW.session ? found : null;
  const saver = new SessionCheckpoints(client);
  const present = session === null ? [] : (await reading(sessionId, () => saver.runs(session))).reverse();
  const past = ((await archive?.runs(sessionId)) ?? []).filter((runId) => !present.includes(runId));
  if (session === null && past.length === 0) {
    throw new PerdureError('SESSION_NOT_FOUND', `There is no session ${sessionId}`);
  }
  const out = file === undefined ? STANDARD_OUTPUT : await newFile(file);
  let checkpoints = 0;
  const write = async (checkpoint: Checkpoint): Promise<void> => {
    checkpoints += 1;
    await out.write(`${JSON.stringify(checkpoint)}\n`);
  };
  for (const runId of past) {
    for await (const checkpoint of archive?.walk(sessionId, runId) ?? []) await write(checkpoint);
  }
  await reading(sessionId, async () => {
    // The server may delete a run in the meantime.
    for (const runId of present) await orNull(saver.walk({ workflowId: sessionId }, runId, 1, write));
  });
  await archive?.close();
  await out.end();
  return checkpoints;
}

/** Where the lines go. */
interface Output {
  write(line: string): Promise<void>;
  end(): Promise<void>;
}

const STANDARD_OUTPUT: Output = {
  write: async (line) => {
    if (!process.stdout.write(line)) await once(process.stdout, 'drain');
  },
  end: async () => undefined,
};

/**
 * Creates a file, and refuses one that exists. The content goes to a partial file next to it, which gets the name when
 * all is written, and is removed when the process exits before.
 */
async function newFile(path: string): Promise<Output> {
  const fail = (verb: string) => (cause: unknown) => {
    const why = messageOf(cause);
    throw new PerdureError('INVALID_ARGUMENT', `file: ${path} cannot be ${verb}: ${why}`, { cause });
  };
  if (existsSync(path)) fail('created')(new Error('it exists'));
  const partial = `${path}.${process.pid}.partial`;
  const handle = await open(partial, 'wx', 0o600).catch(fail('created'));
  process.once('exit', () => rmSync(partial, { force: true }));
  return {
    write: (line) => handle.appendFile(line).catch(fail('written')),
    end: async () => {
      await handle.sync().catch(fail('written'));
      await handle.close();
      await link(partial, path).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') fail('created')(error);
        // Not every file system has links.
        return rename(partial, path).catch(fail('created'));
      });
    },
  };
}
