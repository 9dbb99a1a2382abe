import type { Command } from 'commander';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';

/** `perdure cancel`: a session ends. */
export function cancel(program: Command, cli: Cli): void {
  program
    .command('cancel')
    .summary('end a session')
    .description('End a session. A mutating call in flight is settled first.')
    .argument('<session>', 'id of the session')
    .option('--reason <text>', 'why')
    .option('--by <name>', 'who ends it (default: $USER)')
    .action(async (sessionId: string, { reason, by }: { reason?: string; by?: string }) => {
      const session = await cli.session(sessionId);
      const actor = cli.actor(by);
      await session.cancel({ by: actor, ...defined({ reason }) });
      const next = command('show', sessionId);
      cli.terminal.result(
        { sessionId, asked: 'cancel', by: actor, next },
        () => `asked ${sessionId} to end\n  next: ${next}`,
      );
    });
}
