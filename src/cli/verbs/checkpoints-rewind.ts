import type { Command } from 'commander';
import type { EffectSince } from '../../checkpoints/index.ts';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { UndoPlan } from '../../contract/undo.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { contextOf, textOf } from '../input.ts';
import { ARCHIVE, openSaver, readCheckpoint } from '../read-checkpoint.ts';
import { clean, inline } from '../terminal.ts';
import { planOfUndo } from '../undo-lines.ts';

/** The most characters of a value in the list of effects. */
const BRIEF = 200;

interface Options {
  message?: string;
  context?: string;
  by?: string;
  reason?: string;
  yes?: true;
  undo?: true;
  archive?: string;
}

/** `perdure checkpoints rewind`: takes a session back to a checkpoint. */
export function rewind(group: Command, cli: Cli): void {
  group
    .command('rewind')
    .summary('take a session back to a checkpoint')
    .description(
      'Take a session back to a checkpoint. Without --undo, later effects are not undone: they are shown first, and an equal call ' +
        'is answered from the record. What was spent stays spent.',
    )
    .argument('<session>', 'id of the session')
    .argument('<checkpoint>', 'id of the checkpoint')
    .option('--message <text>', 'message to continue with; - reads standard input')
    .option('--context <json>', 'replaces the context; @file reads a file')
    .option('--by <name>', 'who takes it back (default: $USER)')
    .option('--reason <text>', 'why')
    .option('--undo', 'undo the later effects whose tools can; confirming the list approves it')
    .option('--yes', 'do not ask for confirmation')
    .option(...ARCHIVE)
    .addHelpText(
      'after',
      '\nA rewind is refused while a mutation is open, unless Temporal has ended the\nsession. A running session needs its worker for a rewind.',
    )
    .action(async (sessionId: string, checkpointId: string, options: Options) => {
      const { terminal } = cli;
      const message = options.message === undefined ? undefined : await textOf(options.message);
      const by = cli.actor(options.by);
      const { archive } = options;
      const {
        past,
        effects: before,
        plan,
      } = await terminal.wait(`reading ${sessionId}`, () => outlook(cli, sessionId, checkpointId, options));
      if (!options.yes && !(await confirmed(cli, sessionId, before, plan))) {
        terminal.progress('not rewound');
        process.exitCode = EXIT.failure;
        return;
      }
      const { client, sessions } = await cli.connect();
      const { effectsKept } = await import('../../checkpoints/effects-left.ts');
      const { taskQueueOf } = await import('../time-travel.ts');
      await terminal.wait(`rewinding ${sessionId}`, async () =>
        sessions.rewind(
          { sessionId, checkpointId },
          {
            by,
            reason: options.reason ?? 'no reason given',
            saver: await openSaver(cli, sessionId, archive),
            taskQueue: await taskQueueOf(cli, sessionId),
            ...(plan === undefined ? {} : { undo: { digest: plan.digest } }),
            ...defined({ message, context: await contextOf(options.context) }),
          },
        ),
      );
      const effects = await effectsKept(client, past, before);
      const next = command('tail', sessionId);
      terminal.result({ sessionId, checkpointId, by, effects, next }, () =>
        clean(
          `rewound ${sessionId} to ${checkpointId}; later effects that stay: ${effects.length}\n  next: ${next}`,
        ),
      );
    });
}

/** What a rewind would leave behind. @throws PerdureError `SESSION_BUSY` while a mutation is open */
async function outlook(
  cli: Cli,
  sessionId: string,
  checkpointId: string,
  { archive, undo }: Options,
): Promise<{ past: Checkpoint; effects: EffectSince[]; plan: UndoPlan | undefined }> {
  const { effectsSince, undoPlanSince } = await import('../../checkpoints/effects-left.ts');
  const { openMutations, origin } = await import('../time-travel.ts');
  const past = await readCheckpoint(cli, sessionId, checkpointId, archive);
  const now = await readCheckpoint(cli, sessionId, undefined, archive);
  const open = await openMutations(cli, origin(now));
  if (open.length > 0) {
    throw new PerdureError(
      'SESSION_BUSY',
      `Session ${sessionId} cannot be rewound while ${open.join(', ')} is open. Wait until it settles, or resolve it: ${command('show', sessionId)}`,
      { details: { open } },
    );
  }
  const { client } = await cli.connect();
  const plan = undo === true ? await undoPlanSince(client, past, now) : undefined;
  return { past, effects: await effectsSince(client, past, now), plan };
}

/** What an equal call does after the rewind, unless it is answered from the record. */
const AGAIN: Readonly<Record<EffectSince['again'], string>> = {
  answered: '',
  doubtful: '  (outcome unknown: an equal call waits for a person)',
  repeated: '  (idempotent: an equal call runs again)',
  undone: '  (undone: an equal call runs again)',
};

async function confirmed(
  cli: Cli,
  sessionId: string,
  effects: readonly EffectSince[],
  plan: UndoPlan | undefined,
): Promise<boolean> {
  if (!cli.attended) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `Nobody can confirm the rewind: this is not a terminal. Later effects that stay: ${effects.length}. Add --yes`,
      { details: { effects } },
    );
  }
  if (plan !== undefined) {
    process.stderr.write(`${planOfUndo(plan).join('\n')}\n`);
    return (await cli.ask("Type the session's id to undo this and rewind it: ")) === sessionId;
  }
  const lines = effects.map(
    ({ tool, again, args, output, completedAt }) =>
      `  ${clean(tool)} ${inline(args, BRIEF)} -> ${inline(output, BRIEF)}  ${completedAt ?? (args === null ? 'before an earlier rewind' : 'not ended')}${AGAIN[again]}`,
  );
  process.stderr.write(
    effects.length === 0
      ? 'No effect happened after the checkpoint.\n'
      : `These effects happened after the checkpoint, and stay:\n${lines.join('\n')}\n`,
  );
  return (await cli.ask("Type the session's id to rewind it: ")) === sessionId;
}
