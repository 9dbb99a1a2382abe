import { LRUCache } from 'lru-cache';
import type { StorePastInput } from '../contract/activities.ts';
import type { Leaving } from '../contract/piece.ts';
import type { ContentRef } from '../contract/thread.ts';

/** What leaves a run, and the newest piece of the runs before it. */
export interface RunPast {
  leaving: Leaving;
  newest?: ContentRef;
}

/** More sessions than leave their runs at one time. What is forgotten is read from the history. */
const KEPT = 20;

/**
 * What the workflows of this process have handed over to be stored. As with `IssuedCalls`, a mark in the activity's input tells
 * that the history has the workflow task that handed it over.
 */
export class HandedPasts {
  readonly #pasts = new LRUCache<string, RunPast & { mark: number }>({ max: KEPT });

  note(runId: string, past: RunPast & { mark: number }): void {
    this.#pasts.set(runId, past);
  }

  /** Takes what this process was handed; `undefined` for what another process issued, and for a repeated attempt. */
  take(runId: string, { mark }: StorePastInput): RunPast | undefined {
    const past = this.#pasts.get(runId);
    this.#pasts.delete(runId);
    return past !== undefined && past.mark === mark ? past : undefined;
  }
}
