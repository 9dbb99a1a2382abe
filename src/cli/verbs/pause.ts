import type { Command } from 'commander';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';

interface Options {
  now?: true;
  reason?: string;
  by?: string;
}

/** `perdure pause`: stops a session from issuing new calls. */
export function pause(program: Command, cli: Cli): void {
  program
    .command('pause')
    .summary('pause a session')
    .description(
      'Pause a session: it starts no model or tool call. If no worker runs, the pause begins when one does.',
    )
    .argument('<session>', 'id of the session')
    .option('--now', 'also stop calls in flight; mutating calls are settled first')
    .option('--reason <text>', 'why')
    .option('--by <name>', 'who pauses it (default: $USER)')
    .action(async (sessionId: string, { now, reason, by }: Options) => {
      const session = await cli.session(sessionId);
      const actor = cli.actor(by);
      await session.pause({
        by: actor,
        ...defined({ now, reason }),
      });
      const next = command('resume', sessionId);
      cli.terminal.result(
        { sessionId, asked: 'pause', by: actor, next },
        () => `asked ${sessionId} to pause\n  next: ${next}`,
      );
    });
}
