/** Commands to type next, so that a shell reads each argument as one. */
import type { SeenCall } from './calls.ts';

/** How many digits of a digest a command has: nobody finds other arguments with the same. */
export const SHOWN_DIGITS = 12;

/**
 * A command about a call that holds only for the arguments that were seen.
 *
 * @param words - what comes after the call, such as `absent`.
 * @param dispatchNo - of a resolution, which holds only for this dispatch.
 */
export function callCommand(
  verb: string,
  sessionId: string,
  { callId, argsDigest }: SeenCall,
  { words = [], dispatchNo }: { words?: readonly string[]; dispatchNo?: number | undefined } = {},
): string {
  const seen = ['--digest', argsDigest.slice(0, SHOWN_DIGITS)];
  if (dispatchNo !== undefined) seen.push('--dispatch', String(dispatchNo));
  return command(verb, sessionId, callId, ...words, ...seen);
}

/** A command of ours with its arguments quoted where a POSIX shell would take them apart; placeholders are added to it. */
export function command(...words: string[]): string {
  return ['perdure', ...words.map(quoted)].join(' ');
}

/** A word as a POSIX shell reads it as one. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
