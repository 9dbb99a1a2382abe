import { expect, test } from 'vitest';
import { saidLimits } from '../../src/activities/rate-headers.ts';

const DATE = 'Mon, 23 Nov 2026 12:00:00 GMT';

test.each<[string, Record<string, string>, object]>([
  [
    "OpenAI's",
    {
      'x-ratelimit-limit-requests': '500',
      'x-ratelimit-remaining-requests': '499',
      'x-ratelimit-reset-requests': '120ms',
      'x-ratelimit-limit-tokens': '30000',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '6m0s',
    },
    {
      requests: { limit: 500, remaining: 499, resetMs: 120 },
      tokens: { limit: 30_000, remaining: 0, resetMs: 360_000 },
    },
  ],
  [
    "Anthropic's, whose resets are moments by the provider's clock",
    {
      date: DATE,
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2026-11-23T12:00:02Z',
      'anthropic-ratelimit-tokens-limit': '90000',
      'anthropic-ratelimit-tokens-remaining': '80000',
      'anthropic-ratelimit-tokens-reset': '2026-11-23T12:00:10Z',
    },
    {
      requests: { limit: 50, remaining: 49, resetMs: 2_000 },
      tokens: { limit: 90_000, remaining: 80_000, resetMs: 10_000 },
    },
  ],
  [
    "Anthropic's with input and output apart",
    {
      date: DATE,
      'anthropic-ratelimit-input-tokens-limit': '50000',
      'anthropic-ratelimit-input-tokens-remaining': '40000',
      'anthropic-ratelimit-output-tokens-limit': '10000',
      'anthropic-ratelimit-output-tokens-remaining': '0',
      'anthropic-ratelimit-output-tokens-reset': '2026-11-23T12:00:10Z',
    },
    { tokens: { limit: 60_000, remaining: 0, resetMs: 10_000 } },
  ],
  ['none', { 'content-type': 'text/event-stream' }, {}],
  [
    'ones that cannot be read',
    {
      'x-ratelimit-limit-tokens': '-1',
      'x-ratelimit-remaining-tokens': 'many',
      'x-ratelimit-reset-tokens': 'soon',
      'x-ratelimit-limit-requests': '',
    },
    {},
  ],
  [
    'a reset in seconds and one in Unix time',
    {
      date: DATE,
      'x-ratelimit-reset-requests': '1.5',
      'x-ratelimit-reset-tokens': String(Date.parse(DATE) / 1_000 + 3),
    },
    { requests: { resetMs: 1_500 }, tokens: { resetMs: 3_000 } },
  ],
])('rate limit headers are read: %s', (_, headers, said) => {
  expect(saidLimits(headers)).toEqual(said);
});
