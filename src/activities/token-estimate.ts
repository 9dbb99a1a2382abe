/** How many tokens the requests of one model will use, by those before them. */
import type { Usage } from '../contract/model-call.ts';
import { BYTES_PER_TOKEN } from '../contract/view.ts';

/** How much the newest request counts. */
const NEWEST = 0.1;

/**
 * A reservation for the longest possible reply would leave most of a limit unused, so replies are expected to be as long as
 * those before them, and somewhat longer.
 */
export class TokenEstimate {
  #tokensPerByte = 1 / BYTES_PER_TOKEN;
  #output: { mean: number; deviation: number } | null = null;

  prompt(bytes: number): number {
    return Math.ceil(bytes * this.#tokensPerByte);
  }

  /** @param most - that the request allows */
  output(most: number): number {
    if (this.#output === null) return most;
    const { mean, deviation } = this.#output;
    return Math.min(most, Math.ceil(mean + 2 * deviation));
  }

  learn(bytes: number, { inputTokens, outputTokens }: Usage): void {
    if (inputTokens !== null && bytes > 0) {
      const found = inputTokens / bytes;
      // It rises at once and falls slowly: too high an estimate is given back, too low a one exceeds the limit.
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
