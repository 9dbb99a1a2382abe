import type { Command } from 'commander';
import type { Cli } from '../cli.ts';

/** `perdure approve`: lets a call run with the arguments that are shown. */
export function approve(program: Command, cli: Cli): void {
  program
    .command('approve')
    .summary('let a call run')
    .description('let a call run; it is refused when its arguments are no longer those that were read')
    .argument('<session>')
    .argument('[call]', 'may be left out when exactly one waits')
    .option('--by <name>', 'who decides (default: $USER)')
    .action(async (session: string, call: string | undefined, { by }: { by?: string }) => {
      const { decideCall } = await import('../decide-call.ts');
      await decideCall(cli, session, call, { decision: 'approve' }, by);
    });
}
