/** The rate limits of a worker's options. */
import type { Duration } from '@temporalio/common';
import { durationProblem, nameProblem } from '../agent/checks.ts';
import { PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { WindowLimit } from '../contract/rates.ts';
import { msToNumber } from '../temporal/sdk-time.ts';

/** How much a provider allows a key. Give an amount, or `fromHeaders`. */
export interface RateLimit {
  requestsPerMinute?: number;
  /** Input plus output tokens. */
  tokensPerMinute?: number;
  /**
   * The time over which the provider counts. With `10s`, a sixth of the amounts is allowed in any 10 seconds. Default:
   * one minute.
   */
  window?: Duration;
  /**
   * Learns the limit from the headers of the provider's answers: `x-ratelimit-*` as OpenAI sends them, or
   * `anthropic-ratelimit-*`. They count as amounts per window. A given amount stays the maximum. Default: `false`.
   */
  fromHeaders?: boolean;
}

const MINUTE_MS = 60_000;
const FIELDS: readonly string[] = ['requestsPerMinute', 'tokensPerMinute', 'window', 'fromHeaders'];

/** @throws PerdureError `INVALID_DEFINITION` that names the field */
export function windowLimits(limits: Readonly<Record<string, RateLimit>>): Map<string, WindowLimit> {
  return new Map(
    Object.entries(limits).map(([name, limit]) => [name, windowLimit(`rateLimits.${name}`, limit)]),
  );
}

function windowLimit(field: string, limit: RateLimit): WindowLimit {
  const { requestsPerMinute, tokensPerMinute, window = MINUTE_MS, fromHeaders = false } = limit;
  const problem =
    nameProblem(`${field}.`, limit, FIELDS) ?? durationProblem(`${field}.window`, window, { least: 1_000 });
  if (problem !== null) throw new PerdureError('INVALID_DEFINITION', problem);
  if (typeof fromHeaders !== 'boolean')
    throw invalid(`${field}.fromHeaders`, `${JSON.stringify(fromHeaders)} must be true or false`);
  if (requestsPerMinute === undefined && tokensPerMinute === undefined && !fromHeaders)
    throw invalid(field, 'set requestsPerMinute, tokensPerMinute or fromHeaders: true');
  const windowMs = msToNumber(window);
  const inWindow = (name: string, perMinute: number | undefined): number | undefined => {
    if (perMinute === undefined) return undefined;
    if (!Number.isFinite(perMinute) || perMinute <= 0)
      throw invalid(`${field}.${name}`, `${perMinute} must be a number above 0`);
    const amount = Math.floor((perMinute * windowMs) / MINUTE_MS);
    if (amount < 1) throw invalid(`${field}.window`, `allows not one of ${perMinute} ${name}: widen it`);
    return amount;
  };
  return {
    windowMs,
    ...(fromHeaders ? { fromHeaders } : {}),
    ...defined({
      requests: inWindow('requestsPerMinute', requestsPerMinute),
      tokens: inWindow('tokensPerMinute', tokensPerMinute),
    }),
  };
}

function invalid(field: string, problem: string): PerdureError {
  return new PerdureError('INVALID_DEFINITION', `${field}: ${problem}`, { details: { field } });
}
