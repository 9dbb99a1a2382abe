import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { jsonOf, type SeenOptions, withDecision } from '../input.ts';

/** `perdure edit`: lets a call run with other arguments. */
export function edit(program: Command, cli: Cli): void {
  withDecision(program.command('edit'))
    .summary('let a call run with other arguments')
    .description("Let a tool call run with other arguments. The tool's schema checks them first.")
    .argument('<session>', 'id of the session')
    .argument('[call]', 'id of the call; optional when exactly one waits')
    .requiredOption('--args <json>', 'all arguments; @file reads a file')
    .action(async (session: string, call: string | undefined, options: SeenOptions & { args: string }) => {
      const args = await jsonOf('--args', options.args);
      const { decideCall } = await import('../decide-call.ts');
      await decideCall(cli, session, call, { decision: 'edit', args }, options);
    });
}
