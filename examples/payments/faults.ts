/** The faults that a test or a demonstration arms, and the requests that they hold. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Held, ServiceFault } from './protocol.ts';

interface Armed extends ServiceFault {
  times: number;
}

/** `answered`: the fault has dealt with the request. `go on`: there was none, or it is over. */
export type Struck = 'answered' | 'go on';

export class FaultBoard {
  readonly #stopping: AbortSignal;
  readonly #armed: Armed[] = [];
  readonly #held = new Map<Held, () => void>();
  readonly #watchers = new Set<() => void>();

  /** Everything that waits here ends (by throwing) when `stopping` fires. */
  constructor(stopping: AbortSignal) {
    this.#stopping = stopping;
  }

  arm(fault: ServiceFault): void {
    this.#armed.push({ ...fault, times: fault.times ?? 1 });
  }

  /** Forgets the faults that have not struck yet. */
  disarm(): void {
    this.#armed.length = 0;
  }

  get armed(): readonly ServiceFault[] {
    return this.#armed;
  }

  get held(): readonly Held[] {
    return [...this.#held.keys()];
  }

  /** Lets all held requests go on; returns how many there were. */
  release(): number {
    const releases = [...this.#held.values()];
    for (const release of releases) release();
    return releases.length;
  }

  /** Resolves as soon as at least `min` requests are held. */
  async untilHeld(min: number, gone: AbortSignal): Promise<readonly Held[]> {
    const signal = AbortSignal.any([gone, this.#stopping]);
    while (this.#held.size < min) {
      await new Promise<void>((resolve, reject) => {
        this.#watchers.add(resolve);
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
    }
    return this.held;
  }

  /** Lets the next armed fault for this place strike, if there is one. */
  async strike(at: Held, response: ServerResponse): Promise<Struck> {
    const index = this.#armed.findIndex((fault) => fault.on === at.on && fault.when === at.when);
    const fault = this.#armed[index];
    if (fault === undefined) return 'go on';
    fault.times -= 1;
    if (fault.times === 0) this.#armed.splice(index, 1);

    if (fault.do === 'hang') {
      await this.#hold(at, fault.delayMs);
      return 'go on';
    }
    if (fault.delayMs !== undefined) await sleep(fault.delayMs, undefined, { signal: this.#stopping });
    if (fault.do === 'drop-connection') response.destroy();
    else {
      const status = fault.status ?? 503;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { code: 'fault', message: `armed fault: status ${status}` } }));
    }
    return 'answered';
  }

  async #hold(held: Held, delayMs: number | undefined): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#stopping]);
    this.#held.set(held, () => over.abort());
    for (const watcher of this.#watchers) watcher();
    this.#watchers.clear();
    try {
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener(
          'abort',
          () => (over.signal.aborted ? resolve() : reject(signal.reason as Error)),
          {
            once: true,
          },
        );
        if (delayMs !== undefined) sleep(delayMs, undefined, { signal }).then(resolve, () => {});
      });
    } finally {
      this.#held.delete(held);
    }
  }
}
