/** Places at which a worker process can be held, so that a test can crash or freeze it exactly there. */

/** What a worker process tells its harness, over Node's channel between parent and child. */
export type WorkerNews =
  | { readonly kind: 'ready' }
  | { readonly kind: 'reached'; readonly point: string; readonly visit: number; readonly detail: string };

/** What a harness tells its worker process. */
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

/** On the process, not in this module: agents that load as CommonJS have a copy of it. */
const KEY = Symbol.for('perdure.breakpoints');
const shared = globalThis as { [KEY]?: Breakpoints };

/** Called once by the worker process: where it is to hold, and how it learns that it may go on. */
export function installBreakpoints(names: readonly string[]): void {
  const held: Breakpoints['held'] = new Map();
  shared[KEY] = { points: new Set(names), visits: 0, held };
  process.on('message', (message: Release) => {
    if (message.kind !== 'release') return;
    held.get(message.visit)?.();
    held.delete(message.visit);
  });
}

/** From now on nothing is held, and what is goes on. */
export function endBreakpoints(): void {
  const state = shared[KEY];
  if (state === undefined) return;
  state.points = new Set();
  for (const release of state.held.values()) release();
  state.held.clear();
}

/**
 * Holds here, in a worker process whose harness named this point in `breakAt`, until it is released; anywhere
 * else, and for any other name, it returns at once. Put it into a tool to crash a worker at that line.
 *
 * @param detail - a text that the test gets to see when the point is reached.
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
