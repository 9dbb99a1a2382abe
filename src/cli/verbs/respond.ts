import type { Command } from 'commander';
import { PerdureError } from '../../contract/errors.ts';
import type { Cli } from '../cli.ts';
import { jsonOrTextOf, type SeenOptions, withDecision } from '../input.ts';

/** `perdure respond`: answers in place of a call. */
export function respond(program: Command, cli: Cli): void {
  withDecision(program.command('respond'))
    .description('do not let a call run; this answer stands for its result')
    .argument('<session>')
    .argument('[call]', 'may be left out when exactly one waits')
    .option('--output <json|text>', 'the answer, or @file; at a terminal you are asked for it')
    .action(async (session: string, call: string | undefined, options: SeenOptions & { output?: string }) => {
      const { decideCall } = await import('../decide-call.ts');
      const given = options.output ?? (cli.attended ? await cli.ask('The answer: ') : '');
      if (given === '') {
        throw new PerdureError('INVALID_ARGUMENT', "Give the answer: --output 'text', JSON, or @file");
      }
      const output = await jsonOrTextOf('--output', given);
      await decideCall(cli, session, call, { decision: 'respond', output }, options);
    });
}
