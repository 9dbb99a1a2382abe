import type { Command } from 'commander';
import type { Cli } from '../cli.ts';

/** `perdure reject`: does not let a call run. */
export function reject(program: Command, cli: Cli): void {
  program
    .command('reject')
    .description('do not let a call run; the model is told why')
    .argument('<session>')
    .argument('[call]', 'may be left out when exactly one waits')
    .option('--reason <text>', 'why')
    .option('--by <name>', 'who decides (default: $USER)')
    .action(async (session: string, call: string | undefined, options: { reason?: string; by?: string }) => {
      const { reason, by } = options;
      const { decideCall } = await import('../decide-call.ts');
      const decision = { decision: 'reject' as const, ...(reason === undefined ? {} : { reason }) };
      await decideCall(cli, session, call, decision, by);
    });
}
