/** The verbs that decide on a call that waits for approval. */
import type { Command } from 'commander';
import type { Decision } from '../../contract/calls.ts';
import { PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { Cli } from '../cli.ts';
import { jsonOf, jsonOrTextOf, type SeenOptions, withDecision } from '../input.ts';

interface Options extends SeenOptions {
  args?: string;
  reason?: string;
  output?: string;
}

/** `perdure approve`, `edit`, `reject` and `respond`. */
export function decide(program: Command, cli: Cli): void {
  const verb = (
    decision: Decision['decision'],
    [summary, description]: [string, string],
    read: (options: Options) => Decision | Promise<Decision>,
  ): Command =>
    withDecision(program.command(decision))
      .summary(summary)
      .description(description)
      .argument('<session>', 'id of the session')
      .argument('[call]', 'id of the call; optional when exactly one waits')
      .action(async (session: string, call: string | undefined, options: Options) => {
        const { decideCall } = await import('../decide-call.ts');
        await decideCall(cli, session, call, await read(options), options);
      });
  verb('approve', ['let a call run', 'Let a tool call run with its current arguments.'], () => ({
    decision: 'approve',
  }));
  verb(
    'edit',
    [
      'let a call run with other arguments',
      "Let a tool call run with other arguments. The tool's schema checks them first.",
    ],
    async ({ args = '' }) => ({ decision: 'edit', args: await jsonOf('--args', args) }),
  ).requiredOption('--args <json>', 'all arguments; @file reads a file');
  verb(
    'reject',
    ['refuse a call', 'Refuse a tool call. It does not run, and the model is told your reason.'],
    ({ reason }) => ({ decision: 'reject', ...defined({ reason }) }),
  ).option('--reason <text>', 'what the model is told');
  verb(
    'respond',
    [
      'answer in place of a call',
      'Answer in place of a tool call. It does not run, and the model gets your answer as its result.',
    ],
    async ({ output }) => {
      const given = output ?? (cli.attended ? await cli.ask('The answer: ') : '');
      if (given === '') {
        throw new PerdureError('INVALID_ARGUMENT', '--output is missing: write a text, JSON or @file');
      }
      return { decision: 'respond', output: await jsonOrTextOf('--output', given) };
    },
  ).option('--output <json|text>', 'the answer; @file reads a file; at a terminal you are asked');
}
