import type { Command } from 'commander';
import type { Resolution } from '../../contract/calls.ts';
import { invalid, PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { count, jsonOrTextOf, type SeenOptions, withSeen } from '../input.ts';
import { clean, inline } from '../terminal.ts';

const OUTCOMES = ['landed', 'absent', 'failed'];

interface Options extends SeenOptions {
  output?: string;
  reason?: string;
}

/** `perdure resolve`: says what became of a call whose outcome is unknown. */
export function resolve(program: Command, cli: Cli): void {
  withSeen(program.command('resolve'))
    .summary('settle a call whose outcome is unknown')
    .description(
      'Say what became of a call whose outcome is unknown: landed (it happened), absent (it did not happen and ' +
        'never will; it runs again), failed (it does not run again, and the model is told).',
    )
    .argument('<session>', 'id of the session')
    .argument('[call]', 'id of the call; optional when exactly one is unknown')
    .argument('[outcome]', 'landed, absent or failed; at a terminal you are asked')
    .option('--dispatch <number>', 'refuse at another dispatch; perdure show prints the number', count)
    .option('--output <json|text>', 'with landed: the result; @file reads a file (default: null)')
    .option('--reason <text>', 'with failed: what the model is told')
    .addHelpText(
      'after',
      '\nWithout --digest and --dispatch, the call is shown and you confirm it. Scripts\n' +
        'and --json cannot confirm. There, give both.',
    )
    .action(
      async (sessionId: string, first: string | undefined, second: string | undefined, options: Options) => {
        const { terminal } = cli;
        const isOutcome = second === undefined && first !== undefined && OUTCOMES.includes(first);
        const named = isOutcome ? undefined : first;
        const outcome = isOutcome ? first : second;
        const given = outcome === undefined ? null : await resolutionOf(outcome, options);
        const { chooseOpenCall, shownDigest } = await import('../decide-call.ts');
        const chosen = await chooseOpenCall(cli, sessionId, named, options, outcome);
        if (chosen === null) return;
        const { call, outcome: said } = chosen;
        const resolution = given ?? (await resolutionOf(said, options));
        const session = await cli.session(sessionId);
        const by = cli.actor(options.by);
        const { status } = await terminal.wait('resolving', () => session.resolve(call, resolution, { by }));
        const { callId, tool, args, dispatchNo } = call;
        terminal.result({ sessionId, ...call, ...resolution, by, status }, () =>
          [
            `recorded: dispatch ${dispatchNo} of ${clean(callId)} is ${resolution.outcome}; the call is ${status}`,
            `  ${terminal.style('bold', clean(tool ?? ''))} ${inline(args)}`,
            `  by ${clean(by)} for digest ${shownDigest(call.argsDigest)}`,
            `  next: ${clean(command('tail', sessionId))}`,
          ].join('\n'),
        );
      },
    );
}

async function resolutionOf(outcome: string, { output, reason }: Options): Promise<Resolution> {
  if (output !== undefined && outcome !== 'landed') throw invalid('--output', 'needs the outcome landed');
  if (reason !== undefined && outcome !== 'failed') throw invalid('--reason', 'needs the outcome failed');
  switch (outcome) {
    case 'landed':
      return { outcome, output: output === undefined ? null : await jsonOrTextOf('--output', output) };
    case 'absent':
      return { outcome };
    case 'failed':
      return { outcome, ...defined({ reason }) };
    default:
      throw new PerdureError(
        'INVALID_ARGUMENT',
        `outcome: ${JSON.stringify(outcome)} is none of ${OUTCOMES.join(', ')}`,
      );
  }
}
