import { once } from 'node:events';
import { createWriteStream, WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { Command } from 'commander';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { PerdureError } from '../../contract/errors.ts';
import { WORKFLOW } from '../../contract/names.ts';
import { openExisting } from '../archives.ts';
import type { Cli } from '../cli.ts';
import { ARCHIVE } from '../read-checkpoint.ts';
import { clean } from '../terminal.ts';

/** `perdure checkpoints export`: a session's past as a file. */
export function exportCheckpoints(group: Command, cli: Cli): void {
  group
    .command('export')
    .summary("write a session's checkpoints as lines of JSON")
    .description(
      "write all checkpoints of a session, oldest first, as lines of JSON: each the saver's record. Those that the " +
        'server no longer has are in an archive.',
    )
    .argument('<session>')
    .argument('[file]', 'a new file; - or none is standard output')
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
  const archive = place === undefined ? undefined : await openExisting(place);
  const { client } = await cli.connect();
  const [{ orNull }, { SessionCheckpoints }, { findExecution, reading }] = await Promise.all([
    import('../../history/index.ts'),
    import('../../saver/session-checkpoints.ts'),
    import('../../saver/wire.ts'),
  ]);
  const found = await reading(sessionId, () => findExecution(client, sessionId));
  const session = found?.type === WORKFLOW.session ? found : null;
  const saver = new SessionCheckpoints(client);
  const present = session === null ? [] : (await reading(sessionId, () => saver.runs(session))).reverse();
  const past = ((await archive?.runs(sessionId)) ?? []).filter((runId) => !present.includes(runId));
  if (session === null && past.length === 0) {
    throw new PerdureError('SESSION_NOT_FOUND', `There is no session ${sessionId}. List them: perdure ls`);
  }
  const out = file === undefined ? process.stdout : await newFile(file);
  let checkpoints = 0;
  const write = async (checkpoint: Checkpoint): Promise<void> => {
    checkpoints += 1;
    if (!out.write(`${JSON.stringify(checkpoint)}\n`)) await once(out, 'drain');
  };
  for (const runId of past) {
    for await (const checkpoint of archive?.walk(sessionId, runId) ?? []) await write(checkpoint);
  }
  await reading(sessionId, async () => {
    // A run whose retention ends meanwhile is not there.
    for (const runId of present) await orNull(saver.walk({ workflowId: sessionId }, runId, 1, write));
  });
  await archive?.close();
  if (out instanceof WriteStream) {
    out.end();
    await finished(out);
  }
  return checkpoints;
}

/** A file that nothing is lost by: one that exists is refused. */
async function newFile(path: string): Promise<WriteStream> {
  const out = createWriteStream(path, { flags: 'wx' });
  try {
    await once(out, 'open');
    return out;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new PerdureError('INVALID_ARGUMENT', `file: ${path} cannot be made: ${why}`, { cause });
  }
}
