import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { jsonOrTextOf } from '../input.ts';

/** `perdure respond`: answers in place of a call. */
export function respond(program: Command, cli: Cli): void {
  program
    .command('respond')
    .description('do not let a call run; this answer stands for its result')
    .argument('<session>')
    .argument('[call]', 'may be left out when exactly one waits')
    .requiredOption('--output <json|text>', 'the answer, or @file')
    .option('--by <name>', 'who decides (default: $USER)')
    .action(async (session: string, call: string | undefined, options: { output: string; by?: string }) => {
      const output = await jsonOrTextOf('--output', options.output);
      const { decideCall } = await import('../decide-call.ts');
      await decideCall(cli, session, call, { decision: 'respond', output }, options.by);
    });
}
