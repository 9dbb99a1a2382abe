/** Actions, as the server itself counts them: its metric `action` has each with its type. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SESSION_SEARCH_ATTRIBUTES } from '../../src/server/index.ts';
import { freePort } from '../../src/server/server-process.ts';
import type { Context } from './context.ts';
import type { Line } from './report.ts';
import type { Scene } from './scene.ts';
import { stockScene } from './stock.ts';

/** Actions by type. */
export type Actions = Record<string, number>;

/** The server updates its metrics once a second. */
const REPORT_MS = 2_000;

/** A metric's line: its labels and its value. */
const METRIC = /^action\{([^}]*)\} (\S+)$/;

/** Reads the Actions of the namespace `default` from the server's metrics. */
export function readActions(metrics: string): Actions {
  const actions: Actions = {};
  for (const line of metrics.split('\n')) {
    const [, labels = '', value = '0'] = METRIC.exec(line) ?? [];
    const type = /action_type="([^"]*)"/.exec(labels)?.[1];
    if (type === undefined || !labels.includes('namespace="default"')) continue;
    actions[type] = (actions[type] ?? 0) + Number(value);
  }
  return actions;
}

/** The difference, divided by `share`. */
export function minus(after: Actions, before: Actions, share = 1): Actions {
  const left: Actions = {};
  for (const type of new Set([...Object.keys(after), ...Object.keys(before)])) {
    const more = (after[type] ?? 0) - (before[type] ?? 0);
    if (more !== 0) left[type] = more / share;
  }
  return left;
}

export const sum = (actions: Actions): number =>
  Object.values(actions).reduce((all, count) => all + count, 0);

export function actionsLine(measure: string, what: string, found: Actions, more: Partial<Line> = {}): Line {
  return { measure, what, value: sum(found), unit: '', of: found, ...more };
}

/** Workers on a stock server that counts Actions, with a function that counts the Actions of some work. */
export async function countedScene(
  context: Context,
): Promise<{ scene: Scene; during: (work: () => Promise<unknown>) => Promise<Actions> }> {
  const port = await freePort();
  const attributes = Object.entries(SESSION_SEARCH_ATTRIBUTES);
  const scene = await stockScene(
    context,
    '--metrics-port',
    String(port),
    ...attributes.flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
  );
  const taken = async (): Promise<Actions> => {
    await sleep(REPORT_MS);
    return readActions(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  };
  const during = async (work: () => Promise<unknown>): Promise<Actions> => {
    const before = await taken();
    await work();
    return minus(await taken(), before);
  };
  return { scene, during };
}
