import type { Command } from 'commander';
import { PerdureError } from '../../contract/errors.ts';
import type { Cli } from '../cli.ts';
import { jsonOrTextOf, type SeenOptions, withDecision } from '../input.ts';

/** `perdure respond`: answers in place of a call. */
export function respond(program: Command, cli: Cli): void {
  withDecision(program.command('respond'))
    .summary('answer in place of a call')
    .description(
      'Answer in place of a tool call. It does not run, and the model gets your answer as its result.',
    )
    .argument('<session>', 'id of the session')
    .argument('[call]', 'id of the call; optional when exactly one waits')
    .option('--output <json|text>', 'the answer; @file reads a file; at a terminal you are asked')
    .action(async (session: string, call: string | undefined, options: SeenOptions & { output?: string }) => {
      const { decideCall } = await import('../decide-call.ts');
      const given = options.output ?? (cli.attended ? await cli.ask('The answer: ') : '');
      if (given === '') {
        throw new PerdureError('INVALID_ARGUMENT', '--output is missing: write a text, JSON or @file');
      }
      const output = await jsonOrTextOf('--output', given);
      await decideCall(cli, session, call, { decision: 'respond', output }, options);
    });
}
