import type { Command } from 'commander';
import { defined } from '../../contract/json.ts';
import type { Cli } from '../cli.ts';
import { type SeenOptions, withDecision } from '../input.ts';

/** `perdure reject`: does not let a call run. */
export function reject(program: Command, cli: Cli): void {
  withDecision(program.command('reject'))
    .summary('refuse a call')
    .description('Refuse a tool call. It does not run, and the model is told your reason.')
    .argument('<session>', 'id of the session')
    .argument('[call]', 'id of the call; optional when exactly one waits')
    .option('--reason <text>', 'what the model is told')
    .action(async (session: string, call: string | undefined, options: SeenOptions & { reason?: string }) => {
      const { reason } = options;
      const { decideCall } = await import('../decide-call.ts');
      const decision = { decision: 'reject' as const, ...defined({ reason }) };
      await decideCall(cli, session, call, decision, options);
    });
}
