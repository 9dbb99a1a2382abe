/** The rate limits of a worker's options. */
import type { Duration } from '@temporalio/common';
import { durationProblem, nameProblem } from '../agent/checks.ts';
import { PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { WindowLimit } from '../contract/rates.ts';
import { msToNumber } from '../temporal/sdk-time.ts';

/** What a provider allows a key. At least one of the two amounts must be given. */
export interface RateLimit {
  requestsPerMinute?: number;
  /** Input plus output tokens. */
  tokensPerMinute?: number;
  /**
   * The time over which the provider counts. With `10s`, a sixth of the amounts is allowed in any 10 seconds. Default: one
   * minute.
   */
  window?: Duration;
}

const MINUTE_MS = 60_000;
const FIELDS: readonly string[] = ['requestsPerMinute', 'tokensPerMinute', 'window'];

/** @throws PerdureError `INVALID_DEFINITION` that names the field */
export function windowLimits(limits: Readonly<Record<string, RateLimit>>): Map<string, WindowLimit> {
  return new Map(
    Object.entries(limits).map(([name, limit]) => [name, windowLimit(`rateLimits.${name}`, limit)]),
  );
}

function windowLimit(field: string, limit: RateLimit): WindowLimit {
  const { requestsPerMinute, tokensPerMinute, window = MINUTE_MS } = limit;
  const problem =
    nameProblem(`${field}.`, limit, FIELDS) ?? durationProblem(`${field}.window`, window, 1_000);
  if (problem !== null) throw new PerdureError('INVALID_DEFINITION', problem);
  if (requestsPerMinute === undefined && tokensPerMinute === undefined)
    throw invalid(field, 'set requestsPerMinute, tokensPerMinute or both');
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
    ...defined({
      requests: inWindow('requestsPerMinute', requestsPerMinute),
      tokens: inWindow('tokensPerMinute', tokensPerMinute),
    }),
  };
}

function invalid(field: string, problem: string): PerdureError {
  return new PerdureError('INVALID_DEFINITION', `${field}: ${problem}`, { details: { field } });
}
