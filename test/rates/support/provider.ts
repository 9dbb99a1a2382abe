/** A provider that enforces a limit itself, over real HTTP. */
import type { Script } from '../../../src/testing/index.ts';

/** What each of its requests uses. */
const USED = { inputTokens: 250, outputTokens: 50 } as const;
const TOKENS = USED.inputTokens + USED.outputTokens;

export interface Provider {
  script: Script;
  /** When it answered requests, and for whom. */
  answered: { at: number; text: string }[];
  /** How many it has refused. */
  refused: number;
}

/**
 * Refuses with 429 what would exceed the limit in a sliding window.
 *
 * @param says - its answers carry OpenAI's headers
 * @param opens - before it answers
 */
export function limitedProvider({
  tokens,
  windowMs,
  says = false,
  opens,
}: {
  tokens: number;
  windowMs: number;
  says?: boolean;
  opens?: Promise<void>;
}): Provider {
  const provider: Provider = {
    answered: [],
    refused: 0,
    script: async ({ lastUserText: text }) => {
      await opens;
      const at = performance.now();
      const recent = provider.answered.filter((each) => each.at > at - windowMs);
      const left = tokens - recent.length * TOKENS;
      const heads = (remaining: number): Record<string, string> =>
        says
          ? {
              'x-ratelimit-limit-tokens': String(tokens),
              'x-ratelimit-remaining-tokens': String(remaining),
              'x-ratelimit-reset-tokens': `${Math.ceil((recent[0]?.at ?? at) + windowMs - at)}ms`,
            }
          : {};
      if (left < TOKENS) {
        provider.refused += 1;
        return { fault: 'status', status: 429, headers: { 'retry-after-ms': '500', ...heads(left) } };
      }
      provider.answered.push({ at, text });
      return { text: 'Done.', usage: USED, headers: heads(left - TOKENS) };
    },
  };
  return provider;
}
