/** Reads the rate limits that providers name in the headers of an answer. */
import { defined } from '../contract/json.ts';
import type { RateSaid, SaidAmount } from '../contract/rates.ts';

type Headers = Readonly<Record<string, string | undefined>>;

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A number above this is a time in Unix seconds, not a duration. */
const EPOCH = 1_000_000_000;

/**
 * Reads the headers of OpenAI (`x-ratelimit-limit-tokens`), which many other providers use, and of Anthropic
 * (`anthropic-ratelimit-tokens-limit`). A header that cannot be read is left out.
 *
 * @returns an empty object when the headers name no limits
 */
export function saidLimits(headers: Headers): Pick<RateSaid, 'requests' | 'tokens'> {
  const requests = amount(headers, 'requests');
  const tokens = amount(headers, 'tokens') ?? inputAndOutput(headers);
  return defined({ requests, tokens });
}

function amount(headers: Headers, name: string): SaidAmount | undefined {
  const field = (key: string): string | undefined =>
    headers[`x-ratelimit-${key}-${name}`] ?? headers[`anthropic-ratelimit-${name}-${key}`];
  const said = defined({
    limit: count(field('limit'), 1),
    remaining: count(field('remaining'), 0),
    resetMs: resetMs(field('reset'), headers['date']),
  });
  return Object.keys(said).length === 0 ? undefined : said;
}

/** Anthropic limits input and output tokens separately. This adds them up to one limit. */
function inputAndOutput(headers: Headers): SaidAmount | undefined {
  const [input, output] = [amount(headers, 'input-tokens'), amount(headers, 'output-tokens')];
  if (input === undefined || output === undefined) return input ?? output;
  const sum = (a?: number, b?: number): number | undefined =>
    a === undefined || b === undefined ? undefined : a + b;
  const isUsedUp = input.remaining === 0 || output.remaining === 0;
  return defined({
    limit: sum(input.limit, output.limit),
    remaining: isUsedUp ? 0 : sum(input.remaining, output.remaining),
    resetMs: Math.max(input.resetMs ?? 0, output.resetMs ?? 0) || undefined,
  });
}

function count(text: string | undefined, least: number): number | undefined {
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= least ? Math.floor(value) : undefined;
}

/** Converts a duration (`6m0s`, `120ms`, `17.5` seconds) or a time on the provider's clock to milliseconds from now. */
function resetMs(text: string | undefined, date: string | undefined): number | undefined {
  if (text === undefined || text.trim() === '') return undefined;
  const now = Date.parse(date ?? '') || Date.now();
  const seconds = Number(text);
  if (Number.isFinite(seconds))
    return Math.max(0, Math.ceil(seconds > EPOCH ? seconds * 1_000 - now : seconds * 1_000));
  if (/^(\d+(\.\d+)?(ms|[smhd]))+$/.test(text)) {
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)];
    return Math.ceil(
      parts.reduce((ms, [, value, unit = '']) => ms + Number(value) * (UNIT_MS[unit] ?? 0), 0),
    );
  }
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
