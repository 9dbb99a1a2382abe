import type { Command } from 'commander';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';

/** `perdure resume`: a session goes on. */
export function resume(program: Command, cli: Cli): void {
  program
    .command('resume')
    .description('let a session go on after a pause or a wait')
    .argument('<session>')
    .option('--by <name>', 'who lets it (default: $USER)')
    .action(async (sessionId: string, options: { by?: string }) => {
      const session = await cli.session(sessionId);
      const by = cli.actor(options.by);
      await session.resume({ by });
      const next = command('tail', sessionId);
      cli.terminal.result(
        { sessionId, asked: 'resume', by, next },
        () => `asked ${sessionId} to go on\n  next: ${next}`,
      );
    });
}
