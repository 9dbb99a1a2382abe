/** Commands of the CLI as text that people can paste into a shell. */
import type { SeenCall } from '../contract/calls.ts';
import type { NextStep } from '../contract/next-step.ts';

/** How many digits of a digest a command shows: enough that nobody can make up other arguments that match. */
export const SHOWN_DIGITS = 12;

/** A placeholder in a command for JSON that the person must fill in. The CLI refuses it as a value. */
export const JSON_PLACEHOLDER = '<json>';

/** A command. Arguments that a POSIX shell would split or interpret are quoted. */
export function command(...words: string[]): string {
  return ['perdure', ...words.map(quoted)].join(' ');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A command about a call that holds only for the arguments that were seen. */
export function callCommand(
  verb: string,
  sessionId: string,
  { callId, argsDigest }: SeenCall,
  ...rest: string[]
): string {
  return command(verb, sessionId, callId, '--digest', argsDigest.slice(0, SHOWN_DIGITS), ...rest);
}

/** The commands that a person may type for a next step: alternatives, of which each does one thing. */
export function commandsFor(next: NextStep): string[] {
  const { sessionId } = next;
  switch (next.action) {
    case 'cancel':
      return [command('cancel', sessionId)];
    case 'fork':
      return [command('checkpoints', 'ls', sessionId)];
    case 'resume':
      return [
        command('resume', sessionId),
        ...(next.call === undefined ? [] : commandsFor({ action: 'resolve', sessionId, ...next.call })),
      ];
    case 'budget':
      return [
        command('budget', sessionId, ...capOption(next.cap, next.atLeast)),
        command('budget', sessionId, '--finish'),
      ];
    case 'pool':
      return [
        command('pool', next.pool, ...(next.cap === undefined ? [] : capOption(next.cap, next.atLeast ?? 0))),
      ];
    case 'decide':
      return [
        callCommand('approve', sessionId, next),
        callCommand('reject', sessionId, next),
        ...(next.undoes === true ? [] : [callCommand('edit', sessionId, next, '--args', JSON_PLACEHOLDER)]),
        callCommand('respond', sessionId, next, '--output', JSON_PLACEHOLDER),
      ];
    case 'resolve': {
      const { callId, argsDigest, dispatchNo } = next;
      const seen = ['--digest', argsDigest.slice(0, SHOWN_DIGITS), '--dispatch', String(dispatchNo)];
      return ['landed', 'absent', 'failed'].map((outcome) =>
        command('resolve', sessionId, callId, outcome, ...seen),
      );
    }
    default:
      return next satisfies never;
  }
}

/** A cap with room for more than the next step: about twice what that step needs. */
function capOption(cap: Extract<NextStep, { action: 'budget' }>['cap'], atLeast: number): [string, string] {
  const value = Number((atLeast * 2).toPrecision(2));
  switch (cap) {
    case 'usd':
      return ['--usd', String(value)];
    case 'tokens':
      return ['--tokens', String(Math.ceil(value))];
    case 'turns':
      return ['--turns', String(value)];
    case 'toolCalls':
      return ['--tool-calls', String(value)];
    case 'activeMs':
      return ['--active', `${Math.ceil(value / 1_000)}s`];
    default:
      return cap satisfies never;
  }
}
