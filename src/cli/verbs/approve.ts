import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { type SeenOptions, withDecision } from '../input.ts';

/** `perdure approve`: lets a call run with the arguments that were seen. */
export function approve(program: Command, cli: Cli): void {
  withDecision(program.command('approve'))
    .summary('let a call run')
    .description('Let a tool call run with its current arguments.')
    .argument('<session>', 'id of the session')
    .argument('[call]', 'id of the call; optional when exactly one waits')
    .action(async (session: string, call: string | undefined, options: SeenOptions) => {
      const { decideCall } = await import('../decide-call.ts');
      await decideCall(cli, session, call, { decision: 'approve' }, options);
    });
}
