/** Runs the work on each thread in order, one piece after the other. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after all earlier work on this thread has settled. */
  run<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    const mine = this.#after(this.#last.get(threadId), work);
    this.#last.set(threadId, mine);
    void this.#forget(threadId, mine);
    return mine;
  }

  async #after<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
    await before?.catch(() => undefined);
    return work();
  }

  async #forget(threadId: string, mine: Promise<unknown>): Promise<void> {
    await mine.catch(() => undefined);
    if (this.#last.get(threadId) === mine) this.#last.delete(threadId);
  }
}
