import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { jsonOrTextOf, type SeenOptions, withSeen } from '../input.ts';

/** `perdure respond`: answers in place of a call. */
export function respond(program: Command, cli: Cli): void {
  withSeen(program.command('respond'))
    .description('do not let a call run; this answer stands for its result')
    .argument('<session>')
    .argument('[call]', 'may be left out when exactly one waits')
    .requiredOption('--output <json|text>', 'the answer, or @file')
    .action(async (session: string, call: string | undefined, options: SeenOptions & { output: string }) => {
      const output = await jsonOrTextOf('--output', options.output);
      const { decideCall } = await import('../decide-call.ts');
      await decideCall(cli, session, call, { decision: 'respond', output }, options);
    });
}
