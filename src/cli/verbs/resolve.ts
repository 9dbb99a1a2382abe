import type { Command } from 'commander';
import type { Resolution } from '../../contract/calls.ts';
import { PerdureError } from '../../contract/errors.ts';
import { command } from '../../contract/shell.ts';
import type { Cli } from '../cli.ts';
import { jsonOrTextOf, type SeenOptions, withSeen } from '../input.ts';
import { clean, inline } from '../terminal.ts';

const OUTCOMES = ['landed', 'absent', 'failed'];

interface Options extends SeenOptions {
  output?: string;
  reason?: string;
}

/** `perdure resolve`: says what became of a call whose outcome is unknown. */
export function resolve(program: Command, cli: Cli): void {
  withSeen(program.command('resolve'))
    .summary('say what became of a call whose outcome nobody knows')
    .description(
      'say what became of a call whose outcome nobody knows: landed (it happened), absent (it did not and will not: ' +
        'it runs again), failed (it does not run again, and the model is told)',
    )
    .usage('[options] <session> [call] landed|absent|failed')
    .argument('<session>')
    .argument('<call>', 'may be left out when exactly one is unknown')
    .argument('[outcome]', OUTCOMES.join(', '))
    .option('--output <json|text>', 'with landed: what it returned, or @file (default: null)')
    .option('--reason <text>', 'with failed: what the model is told')
    .action(async (sessionId: string, first: string, second: string | undefined, options: Options) => {
      const { terminal } = cli;
      const named = second === undefined && OUTCOMES.includes(first) ? undefined : first;
      const resolution = await resolutionOf(named === undefined ? first : second, options);
      const { chooseCall } = await import('../decide-call.ts');
      const chosen = await chooseCall(cli, sessionId, named, options, {
        verb: 'resolve',
        rest: ` ${resolution.outcome}`,
        kinds: ['unknown', 'stuck'],
      });
      if (chosen === null) return;
      const { callId, tool, args } = chosen;
      const session = await cli.session(sessionId);
      const by = cli.actor(options.by);
      const { status } = await terminal.wait('resolving', () => session.resolve(callId, resolution, { by }));
      terminal.result({ sessionId, ...chosen, ...resolution, by, status }, () =>
        [
          `${clean(callId)} ${resolution.outcome}, says ${clean(by)}; the call is ${status}`,
          `  ${terminal.style('bold', clean(tool ?? ''))} ${inline(args)}`,
          `  next: ${clean(command('tail', sessionId))}`,
        ].join('\n'),
      );
    });
}

async function resolutionOf(outcome: string | undefined, { output, reason }: Options): Promise<Resolution> {
  switch (outcome) {
    case 'landed':
      return { outcome, output: output === undefined ? null : await jsonOrTextOf('--output', output) };
    case 'absent':
      return { outcome };
    case 'failed':
      return { outcome, ...(reason === undefined ? {} : { reason }) };
    default:
      throw new PerdureError(
        'INVALID_ARGUMENT',
        `outcome is ${JSON.stringify(outcome ?? '')}: write ${OUTCOMES.join(', ')}`,
      );
  }
}
