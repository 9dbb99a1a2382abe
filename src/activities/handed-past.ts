import { LRUCache } from 'lru-cache';
import type { StorePastInput } from '../contract/activities.ts';
import type { Leaving } from '../contract/piece.ts';
import type { ContentRef } from '../contract/thread.ts';

/** The messages, calls and notes that leave a run, and the newest piece of the runs before it. */
export interface RunPast {
  leaving: Leaving;
  newest?: ContentRef;
}

/** More than the sessions that end a run at the same time. A forgotten entry is read from the history. */
const KEPT = 20;

/**
 * What the workflows of this process have handed over to be stored. As with `IssuedCalls`, the mark in the activity's
 * input proves that the workflow task which handed it over is in the history.
 */
export class HandedPasts {
  readonly #pasts = new LRUCache<string, RunPast & { mark: number }>({ max: KEPT });

  note(runId: string, past: RunPast & { mark: number }): void {
    this.#pasts.set(runId, past);
  }

  /** Takes what this process was handed; `undefined` when another process issued the activity, and on a retry. */
  take(runId: string, { mark }: StorePastInput): RunPast | undefined {
    const past = this.#pasts.get(runId);
    this.#pasts.delete(runId);
    return past !== undefined && past.mark === mark ? past : undefined;
  }
}
