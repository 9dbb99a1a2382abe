import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { jsonOf, type SeenOptions, withDecision } from '../input.ts';

/** `perdure edit`: lets a call run with other arguments. */
export function edit(program: Command, cli: Cli): void {
  withDecision(program.command('edit'))
    .description("let a call run with other arguments, which the tool's schema checks first")
    .argument('<session>')
    .argument('[call]', 'may be left out when exactly one waits')
    .requiredOption('--args <json>', 'all of the arguments, or @file')
    .action(async (session: string, call: string | undefined, options: SeenOptions & { args: string }) => {
      const args = await jsonOf('--args', options.args);
      const { decideCall } = await import('../decide-call.ts');
      await decideCall(cli, session, call, { decision: 'edit', args }, options);
    });
}
