/**
 * A controller that aborts with the first of the signals, or by itself. `AbortSignal.any` leaves weak references, which
 * were a third of the garbage collection of a busy worker.
 */
export function stopWith(...signals: readonly AbortSignal[]): AbortController {
  const controller = new AbortController();
  for (const signal of signals) {
    const stop = (): void => controller.abort(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  }
  return controller;
}
