import type { Command } from 'commander';
import { effectsKept, effectsSince } from '../../checkpoints/effects-left.ts';
import type { EffectSince } from '../../checkpoints/index.ts';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { contextOf, textOf } from '../input.ts';
import { ARCHIVE, openSaver, readCheckpoint } from '../read-checkpoint.ts';
import { clean, inline } from '../terminal.ts';
import { openMutations, origin, taskQueueOf } from '../time-travel.ts';

/** The most characters of a value in the list of effects. */
const BRIEF = 200;

interface Options {
  message?: string;
  context?: string;
  by?: string;
  reason?: string;
  yes?: true;
  archive?: string;
}

/** `perdure checkpoints rewind`: the session itself goes back to a checkpoint. */
export function rewind(group: Command, cli: Cli): void {
  group
    .command('rewind')
    .summary('take a session back to a checkpoint')
    .description(
      'take a session back to a checkpoint. Effects that happened after it are not undone: they are shown first, ' +
        'and answer the agent from the record when it comes to them again. What was spent stays spent.',
    )
    .argument('<session>')
    .argument('<checkpoint>')
    .option('--message <text>', 'what it goes on with; - reads standard input')
    .option('--context <json>', 'a context in place of the one that it has; or @file')
    .option('--by <name>', 'who takes it back (default: $USER)')
    .option('--reason <text>', 'why')
    .option('--yes', 'do not ask')
    .option(...ARCHIVE)
    .addHelpText(
      'after',
      '\nIt is refused while a mutation is open, unless Temporal has ended the session. A running session needs its worker for this.',
    )
    .action(async (sessionId: string, checkpointId: string, options: Options) => {
      const { terminal } = cli;
      const message = options.message === undefined ? undefined : await textOf(options.message);
      const by = cli.actor(options.by);
      const { archive } = options;
      const { past, effects: before } = await terminal.wait(`reading ${sessionId}`, () =>
        outlook(cli, sessionId, checkpointId, archive),
      );
      if (!options.yes && !(await confirmed(cli, sessionId, before))) {
        terminal.progress('not rewound');
        process.exitCode = EXIT.failure;
        return;
      }
      const { client, sessions } = await cli.connect();
      await terminal.wait(`rewinding ${sessionId}`, async () =>
        sessions.rewind(
          { sessionId, checkpointId },
          {
            by,
            reason: options.reason ?? 'no reason given',
            ...(archive === undefined ? {} : { saver: await openSaver(cli, sessionId, archive) }),
            taskQueue: await taskQueueOf(cli, sessionId),
            ...defined({ message, context: await contextOf(options.context) }),
          },
        ),
      );
      const effects = await effectsKept(client, past, before);
      const next = command('tail', sessionId);
      terminal.result({ sessionId, checkpointId, by, effects, next }, () =>
        clean(
          `rewound ${sessionId} to ${checkpointId}; effects after it, which stay: ${effects.length}\n  next: ${next}`,
        ),
      );
    });
}

/** What a rewind would leave behind. @throws PerdureError `SESSION_BUSY` while a mutation is open */
async function outlook(
  cli: Cli,
  sessionId: string,
  checkpointId: string,
  archive: string | undefined,
): Promise<{ past: Checkpoint; effects: EffectSince[] }> {
  const past = await readCheckpoint(cli, sessionId, checkpointId, archive);
  const now = await readCheckpoint(cli, sessionId, undefined, archive);
  const open = await openMutations(cli, origin(now));
  if (open.length > 0) {
    throw new PerdureError(
      'SESSION_BUSY',
      `Session ${sessionId} cannot be rewound while ${open.join(', ')} is open: wait until it is settled, or say what became of it. See ${command('show', sessionId)}`,
      { details: { open } },
    );
  }
  const { client } = await cli.connect();
  return { past, effects: await effectsSince(client, past, now) };
}

/** What an equal call comes to after the rewind, where it is not answered from the record. */
const AGAIN: Readonly<Record<EffectSince['again'], string>> = {
  answered: '',
  doubtful: '  (nobody knows what became of it: you will be asked)',
  repeated: '  (a write: it happens again if the agent asks again)',
};

async function confirmed(cli: Cli, sessionId: string, effects: readonly EffectSince[]): Promise<boolean> {
  if (!cli.attended) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `A rewind asks for a word, and nobody is here to give it. Effects after the checkpoint, which stay: ${effects.length}. Add --yes`,
      { details: { effects } },
    );
  }
  const lines = effects.map(
    ({ tool, again, args, output, completedAt }) =>
      `  ${clean(tool)} ${inline(args, BRIEF)} -> ${inline(output, BRIEF)}  ${completedAt ?? (args === null ? 'before an earlier rewind' : 'not ended')}${AGAIN[again]}`,
  );
  process.stderr.write(
    effects.length === 0
      ? 'No effect has happened after the checkpoint.\n'
      : `These have happened after the checkpoint, and stay as they are:\n${lines.join('\n')}\n`,
  );
  return (await cli.ask("Type the session's id to take it back: ")) === sessionId;
}
