/** Checks for definitions of tools and agents. Each returns the problem and what to write, or `null`. */
import type { Duration } from '@temporalio/common';
import { msToNumber } from '../temporal/sdk-time.ts';

/** A duration must be valid, and longer than `least` milliseconds. */
export function durationProblem(field: string, value: Duration | undefined, least = 1): string | null {
  if (value === undefined) return null;
  let ms = Number.NaN;
  try {
    ms = msToNumber(value);
  } catch {
    // It stays `NaN`.
  }
  return Number.isFinite(ms) && ms >= least
    ? null
    : `${field} is ${JSON.stringify(value)}: write milliseconds, or a duration such as '30s'`;
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
