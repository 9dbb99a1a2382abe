/** Breakpoints hold a worker process, so that a test can crash or freeze it at that point. */

/** A message from a worker process to its harness, over Node's channel between parent and child. */
export type WorkerNews =
  | { readonly kind: 'ready' }
  | { readonly kind: 'reached'; readonly point: string; readonly visit: number; readonly detail: string };

/** A message from a harness to its worker process. */
export interface Release {
  readonly kind: 'release';
  readonly point: string;
  readonly visit: number;
}

interface Breakpoints {
  points: ReadonlySet<string>;
  visits: number;
  readonly held: Map<number, () => void>;
}

/** Kept on `globalThis`, not in this module: agents that load as CommonJS have their own copy of the module. */
const KEY = Symbol.for('perdure.breakpoints');
const shared = globalThis as { [KEY]?: Breakpoints };

/** Called once by the worker process. Sets the points at which to hold, and listens for releases. */
export function installBreakpoints(names: readonly string[]): void {
  const held: Breakpoints['held'] = new Map();
  shared[KEY] = { points: new Set(names), visits: 0, held };
  process.on('message', (message: Release) => {
    if (message.kind !== 'release') return;
    held.get(message.visit)?.();
    held.delete(message.visit);
  });
}

/** Releases everything, and holds nothing from now on. */
export function endBreakpoints(): void {
  const state = shared[KEY];
  if (state === undefined) return;
  state.points = new Set();
  for (const release of state.held.values()) release();
  state.held.clear();
}

/**
 * Waits here until the test releases the worker, if the harness named this point in `breakAt`. In any other process,
 * and for any other name, it returns at once. Put it into a tool to crash a worker at that line.
 *
 * @param detail - a text for the test that waits for this point.
 */
export async function breakpoint(name: string, detail = ''): Promise<void> {
  const state = shared[KEY];
  if (state === undefined || !state.points.has(name) || process.send === undefined) return;
  state.visits += 1;
  const visit = state.visits;
  const released = new Promise<void>((resolve) => state.held.set(visit, resolve));
  process.send({ kind: 'reached', point: name, visit, detail } satisfies WorkerNews);
  await released;
}
