import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { textOf } from '../input.ts';
import { ARCHIVE, openSaver, readCheckpoint } from '../read-checkpoint.ts';
import { command } from '../shell.ts';
import { clean } from '../terminal.ts';
import { origin, taskQueueOf } from '../time-travel.ts';

interface Options {
  id?: string;
  message?: string;
  by?: string;
  reason?: string;
  archive?: string;
}

/** `perdure checkpoints fork`: another session goes on from a checkpoint. */
export function fork(group: Command, cli: Cli): void {
  group
    .command('fork')
    .summary('start another session from a checkpoint')
    .description(
      'start another session from a checkpoint; its effects have keys of their own, and a mutation that was open ' +
        'at the checkpoint waits for a person',
    )
    .argument('<session>')
    .argument('<checkpoint>')
    .option('--id <id>', "the new session's id (default: a random one)")
    .option('--message <text>', 'what it goes on with; - reads standard input')
    .option('--by <name>', 'who starts it (default: $USER)')
    .option('--reason <text>', 'why')
    .option(...ARCHIVE)
    .action(async (sessionId: string, checkpointId: string, options: Options) => {
      const { terminal } = cli;
      const message = options.message === undefined ? undefined : await textOf(options.message);
      const by = cli.actor(options.by);
      const { sessions } = await cli.connect();
      const started = await terminal.wait(`forking ${sessionId}`, async () => {
        const { archive } = options;
        const { agent } = origin(await readCheckpoint(cli, sessionId, checkpointId, archive));
        return sessions.fork(
          { sessionId, checkpointId },
          {
            agent,
            by,
            reason: options.reason ?? 'no reason given',
            taskQueue: await taskQueueOf(cli, sessionId),
            ...(archive === undefined ? {} : { saver: await openSaver(cli, sessionId, archive) }),
            ...(options.id === undefined ? {} : { id: options.id }),
            ...(message === undefined ? {} : { message }),
          },
        );
      });
      const next = command('tail', started.id);
      terminal.result({ sessionId: started.id, from: { sessionId, checkpointId }, by, next }, () =>
        clean(`forked ${sessionId} as ${started.id}\n  next: ${next}`),
      );
    });
}
