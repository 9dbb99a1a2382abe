import type { Command } from 'commander';
import { PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { WaitReason } from '../../contract/state.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { clean } from '../terminal.ts';

interface Options {
  by?: string;
  all?: true;
  agent?: string;
  tenant?: string;
  reason?: string;
  yes?: true;
}

/** `perdure resume`: continues a session, or all that wait. */
export function resume(program: Command, cli: Cli): void {
  program
    .command('resume')
    .summary('continue a paused or waiting session')
    .description('Continue a session after a pause or a wait, or all waiting sessions with --all.')
    .argument('[session]', 'id of the session')
    .option('--by <name>', 'who resumes it (default: $USER)')
    .option('--all', 'every session in status waiting; the options below narrow it')
    .option('--agent <name>', 'with --all: only of this agent')
    .option('--tenant <name>', 'with --all: only of this tenant')
    .option('--reason <reason>', 'with --all: only with this wait reason, such as provider_unavailable')
    .option('--yes', 'with --all: do not ask for confirmation')
    .action(async (sessionId: string | undefined, options: Options) => {
      const by = cli.actor(options.by);
      const { all, agent, tenant, reason, yes } = options;
      if (all && sessionId !== undefined)
        throw new PerdureError('INVALID_ARGUMENT', `session: leave out ${sessionId}, or leave out --all`);
      if (!all && [agent, tenant, reason, yes].some((option) => option !== undefined))
        throw new PerdureError('INVALID_ARGUMENT', '--agent, --tenant, --reason and --yes need --all');
      if (all) return resumeAll(cli, by, options);
      if (sessionId === undefined)
        throw new PerdureError('INVALID_ARGUMENT', 'session: name one, or add --all');
      const session = await cli.session(sessionId);
      await session.resume({ by });
      const next = command('tail', sessionId);
      cli.terminal.result(
        { sessionId, asked: 'resume', by, next },
        () => `asked ${clean(sessionId)} to continue\n  next: ${next}`,
      );
    });
}

async function resumeAll(cli: Cli, by: string, { agent, tenant, reason, yes }: Options): Promise<void> {
  const { sessions } = await cli.connect();
  const { terminal } = cli;
  const filter = defined({ agent, tenant });
  const waiting: { id: string; reason: WaitReason }[] = [];
  for await (const { id } of sessions.list({ ...filter, status: 'waiting' })) {
    const { wait } = await sessions.get(id).state();
    if (wait !== null && (reason === undefined || wait.reason === reason))
      waiting.push({ id, reason: wait.reason });
  }
  if (cli.attended && !yes && waiting.length > 0) {
    for (const { id, reason: why } of waiting) terminal.error(`${clean(id)}  ${why}`);
    const word = await cli.ask(`Resume these ${waiting.length} sessions, by ${by}? [y/N] `);
    if (!/^y(es)?$/i.test(word)) {
      terminal.progress('nothing was resumed');
      process.exitCode = EXIT.failure;
      return;
    }
  }
  for (const { id, reason: why } of waiting) {
    await sessions.get(id).resume({ by });
    terminal.item(
      { sessionId: id, asked: 'resume', reason: why, by },
      () => `asked ${clean(id)} to continue (${why})`,
    );
  }
  if (waiting.length === 0) terminal.progress('no session waits');
}
