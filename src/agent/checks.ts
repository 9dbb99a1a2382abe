/** Checks for definitions of tools and agents. Each returns the problem and what to write, or `null`. */
import type { Duration } from '@temporalio/common';
import { msToNumber } from '../temporal/sdk-time.ts';

/** How long a duration may be, in milliseconds and in words. */
export interface Longest {
  ms: number;
  words: string;
}

/** Of what a timer of Node measures, which ends a longer wait after one millisecond. */
export const LONGEST_TIMER: Longest = { ms: 2 ** 31 - 1, words: '2147483647 milliseconds, almost 25 days' };

/** Of what a timer of the session measures. The end of the wait is a date, and dates have an end. */
const LONGEST_WAIT: Longest = { ms: 10 * 365 * 86_400_000, words: '10 years' };

/** A duration must be valid, at least `least` milliseconds, and not longer than its timer can measure. */
export function durationProblem(
  field: string,
  value: Duration | undefined,
  { least = 1, longest = LONGEST_WAIT }: { least?: number; longest?: Longest } = {},
): string | null {
  if (value === undefined) return null;
  let ms = Number.NaN;
  try {
    ms = msToNumber(value);
  } catch {
    // It stays `NaN`.
  }
  const given = `${field} is ${typeof value === 'number' ? value : JSON.stringify(value)}`;
  if (ms > longest.ms) return `${given}: the longest is ${longest.words}. Write a shorter one`;
  return ms >= least ? null : `${given}: write milliseconds, or a duration such as '30s'`;
}

/** A value must have the right type. Otherwise it would be ignored, or sent to a provider. */
export function kindProblem(
  field: string,
  value: unknown,
  kind: 'a text' | 'true or false' | 'a number, 0 or more' | 'an object',
): string | null {
  const right =
    kind === 'a text'
      ? typeof value === 'string'
      : kind === 'true or false'
        ? typeof value === 'boolean'
        : kind === 'a number, 0 or more'
          ? Number.isFinite(value) && Number(value) >= 0
          : typeof value === 'object' && value !== null && !Array.isArray(value);
  return value === undefined || right
    ? null
    : `${field} is ${typeof value === 'number' ? value : JSON.stringify(value)}: write ${kind}`;
}

/** A count must be a whole number from 1. */
export function countProblem(field: string, value: number | undefined): string | null {
  return value === undefined || (Number.isInteger(value) && value > 0)
    ? null
    : `${field} is ${value}: write a whole number from 1`;
}

/** A choice must be one of its words. */
export function choiceProblem(
  field: string,
  value: string | undefined,
  choices: readonly string[],
): string | null {
  if (value === undefined || choices.includes(value)) return null;
  const words = choices.map((choice) => `'${choice}'`);
  return `${field} is ${JSON.stringify(value)}: write ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

/** A name must be known. A misspelt guard would guard nothing. */
export function nameProblem(
  path: string,
  value: object | undefined,
  known: readonly string[],
): string | null {
  const unknown = Object.keys(value ?? {}).find((name) => !known.includes(name));
  return unknown === undefined ? null : `${path}${unknown} is unknown. Known names: ${known.join(', ')}`;
}
