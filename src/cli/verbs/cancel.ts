import type { Command } from 'commander';
import { invalid, PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { UndoPlan } from '../../contract/undo.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { clean } from '../terminal.ts';
import { planOfUndo } from '../undo-lines.ts';

interface Options {
  reason?: string;
  by?: string;
  undo?: boolean;
  each?: true;
  yes?: true;
}

/** `perdure cancel`: ends a session. */
export function cancel(program: Command, cli: Cli): void {
  program
    .command('cancel')
    .summary('end a session')
    .description(
      'End a session. A mutating call in flight is settled first. With --undo, the session then undoes its effects, ' +
        'the last one first: the list is shown, and confirming it approves it. That works for a session that has ended, too.',
    )
    .argument('<session>', 'id of the session')
    .option('--undo', 'undo the effects of the session')
    .option('--no-undo', 'give up an undo: what has not begun stays')
    .option('--each', 'with --undo: ask for an approval of each call, not of the list')
    .option('--yes', 'with --undo: do not ask for confirmation')
    .option('--reason <text>', 'why')
    .option('--by <name>', 'who ends it (default: $USER)')
    .action(async (sessionId: string, { reason, by, ...options }: Options) => {
      if (options.undo !== true && (options.each || options.yes))
        throw invalid(options.each ? '--each' : '--yes', 'needs --undo');
      const session = await cli.session(sessionId);
      const actor = cli.actor(by);
      const plan = options.undo === true ? await session.undoPlan() : undefined;
      if (plan !== undefined && !(await confirmed(cli, sessionId, plan, options))) {
        cli.terminal.progress('not cancelled');
        process.exitCode = EXIT.failure;
        return;
      }
      const said = { by: actor, ...defined({ reason }) };
      if (plan === undefined) await session.cancel({ ...said, ...defined({ undo: options.undo }) });
      else {
        const { sessions } = await cli.connect();
        await sessions.undo(sessionId, { ...said, undo: options.each === true || { digest: plan.digest } });
      }
      const next = command('show', sessionId);
      cli.terminal.result(
        { sessionId, asked: 'cancel', by: actor, ...defined({ undo: plan }), next },
        () => `asked ${sessionId} to end\n  next: ${next}`,
      );
    });
}

/** Shows what an undo would do, and asks. With `--yes` or `--each`, no confirmation is needed here. */
async function confirmed(cli: Cli, sessionId: string, plan: UndoPlan, options: Options): Promise<boolean> {
  const lines = planOfUndo(plan);
  if (options.yes || options.each) {
    for (const line of lines) cli.terminal.progress(line);
    return true;
  }
  if (!cli.attended) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `Nobody can confirm the undo: this is not a terminal. Look at the list in details, then add --yes. Or add --each, and approve each call`,
      { details: { ...plan } },
    );
  }
  process.stderr.write(`${lines.join('\n')}\n`);
  return (
    (await cli.ask(`Type the session's id, ${clean(sessionId)}, to undo this and end it: `)) === sessionId
  );
}
