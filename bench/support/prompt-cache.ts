/** Counts the tokens of prompts, and those that a provider has in its cache. */
import type { LanguageModelV3CallOptions } from '@ai-sdk/provider';

const BYTES_PER_TOKEN = 4;
/** Providers cache the beginning of a prompt in steps of this many tokens. */
const STEP = 128;

export interface Counted {
  tokens: number;
  cached: number;
}

/**
 * Counts like providers: tools first, then messages. Tokens are cached if an earlier request began with the same bytes.
 */
export class PromptCache {
  readonly #last = new Map<string, string>();

  count(job: string, { tools, prompt }: LanguageModelV3CallOptions): Counted {
    const text = JSON.stringify(tools) + JSON.stringify(prompt).slice(0, -1);
    const last = this.#last.get(job) ?? '';
    this.#last.set(job, text);
    const same = text.startsWith(last) ? last.length : common(last, text);
    const steps = Math.floor(same / BYTES_PER_TOKEN / STEP);
    return { tokens: Math.ceil(text.length / BYTES_PER_TOKEN), cached: steps * STEP };
  }
}

function common(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return i;
}
