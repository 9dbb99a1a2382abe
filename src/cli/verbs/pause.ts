import type { Command } from 'commander';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';

interface Options {
  now?: true;
  reason?: string;
  by?: string;
}

/** `perdure pause`: a session issues nothing new. */
export function pause(program: Command, cli: Cli): void {
  program
    .command('pause')
    .description('let a session begin nothing new; without a worker it holds as soon as one is there')
    .argument('<session>')
    .option('--now', 'also stop what is in flight; what has an effect is settled first')
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
