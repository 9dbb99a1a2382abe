import type { Command } from 'commander';
import { type EditInput, editSchema } from '../../contract/edit.ts';
import { PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import { parseKnown } from '../../contract/unknown-name.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { contextOf, jsonOf, textOf } from '../input.ts';
import { ARCHIVE, openSaver, readCheckpoint } from '../read-checkpoint.ts';
import { clean } from '../terminal.ts';

interface Options {
  id?: string;
  message?: string;
  context?: string;
  by?: string;
  reason?: string;
  edits?: string;
  archive?: string;
}

/** `perdure checkpoints fork`: starts another session from a checkpoint. */
export function fork(group: Command, cli: Cli): void {
  group
    .command('fork')
    .summary('start another session from a checkpoint')
    .description(
      'Start another session from a checkpoint. Its effects get new idempotency keys. A mutation that was open at ' +
        'the checkpoint waits for a person.',
    )
    .argument('<session>', 'id of the session')
    .argument('<checkpoint>', 'id of the checkpoint')
    .option('--id <id>', "the new session's id (default: random)")
    .option('--message <text>', 'first message of the new session; - reads standard input')
    .option('--context <json>', 'replaces the context; @file reads a file')
    .option('--by <name>', 'who starts it (default: $USER)')
    .option('--reason <text>', 'why')
    .option(
      '--edits <json>',
      'replaces parts of the state: {"transcript": {"from", "messages"}}, "plan" or "scratchpadRoot"; @file reads a file',
    )
    .option(...ARCHIVE)
    .action(async (sessionId: string, checkpointId: string, options: Options) => {
      const { terminal } = cli;
      const message = options.message === undefined ? undefined : await textOf(options.message);
      const by = cli.actor(options.by);
      const reason = options.reason ?? 'no reason given';
      const given = options.edits === undefined ? undefined : await readEdits(options.edits);
      const edits = given === undefined ? undefined : { by, reason, ...given };
      const { sessions } = await cli.connect();
      const { pastEditProblem } = await import('../../checkpoints/past-edit.ts');
      const { origin, taskQueueOf } = await import('../time-travel.ts');
      const started = await terminal.wait(`forking ${sessionId}`, async () => {
        const { archive } = options;
        const past = origin(await readCheckpoint(cli, sessionId, checkpointId, archive));
        const problem = edits === undefined ? null : pastEditProblem(past, edits);
        if (problem !== null) throw wrong(problem);
        return sessions.fork(
          { sessionId, checkpointId },
          {
            by,
            reason,
            taskQueue: await taskQueueOf(cli, sessionId),
            saver: await openSaver(cli, sessionId, archive),
            ...defined({ id: options.id, message, edits, context: await contextOf(options.context) }),
          },
        );
      });
      const next = command('tail', started.id);
      terminal.result({ sessionId: started.id, from: { sessionId, checkpointId }, by, next }, () =>
        clean(`forked ${sessionId} as ${started.id}\n  next: ${next}`),
      );
    });
}

async function readEdits(argument: string): Promise<EditInput> {
  const value = await jsonOf('--edits', argument);
  // A misspelt name must not start an unedited session.
  const parsed = parseKnown(editSchema, value);
  if (parsed.ok) return parsed.value;
  throw wrong(parsed.message);
}

function wrong(problem: string): PerdureError {
  return new PerdureError('INVALID_ARGUMENT', `--edits: ${problem}`, { details: { option: '--edits' } });
}
