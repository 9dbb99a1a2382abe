/** Estimates how many tokens the requests to one model will use, from earlier requests. */
import type { Usage } from '../contract/model-call.ts';
import { BYTES_PER_TOKEN } from '../contract/view.ts';

/** The weight of the newest request in an average. */
const NEWEST = 0.1;

/**
 * Reserving tokens for the longest possible reply would leave most of a limit unused. So a reply is expected to be
 * somewhat longer than earlier replies.
 */
export class TokenEstimate {
  #tokensPerByte = 1 / BYTES_PER_TOKEN;
  #output: { mean: number; deviation: number } | null = null;

  prompt(bytes: number): number {
    return Math.ceil(bytes * this.#tokensPerByte);
  }

  /** @param most - the most output tokens that the request allows */
  output(most: number): number {
    if (this.#output === null) return most;
    const { mean, deviation } = this.#output;
    return Math.min(most, Math.ceil(mean + 2 * deviation));
  }

  learn(bytes: number, { inputTokens, outputTokens }: Usage): void {
    if (inputTokens !== null && bytes > 0) {
      const found = inputTokens / bytes;
      // It rises at once and falls slowly: a high estimate is given back, a low one exceeds the limit.
      this.#tokensPerByte = Math.max(found, this.#tokensPerByte + NEWEST * (found - this.#tokensPerByte));
    }
    if (outputTokens === null) return;
    if (this.#output === null) this.#output = { mean: outputTokens, deviation: outputTokens / 2 };
    else {
      const off = outputTokens - this.#output.mean;
      this.#output.mean += NEWEST * off;
      this.#output.deviation += NEWEST * (Math.abs(off) - this.#output.deviation);
    }
  }
}
