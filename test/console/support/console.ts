/** The console as `perdure serve` serves it, in a browser. */
import { type AddressInfo, connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';
import axe from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import type { Inbox } from '../../../src/contract/inbox.ts';
import type { Running } from '../../cli/support/perdure.ts';
import { type CliStage, openStage } from '../../cli/support/stage.ts';
import { type OpenedPage, openPage } from '../../support/browser.ts';

/** The tokens of people. The shared one has all roles. */
export const TOKENS = {
  shared: 'shared-token-of-all',
  rita: 'reads-only-token-1',
  hedy: 'token-of-hedy-1234',
  grace: 'token-of-grace-123',
} as const;

const PEOPLE = [
  { token: TOKENS.rita, name: 'rita', roles: ['read'] },
  { token: TOKENS.hedy, name: 'hedy', roles: ['read', 'talk', 'decide'] },
  { token: TOKENS.grace, name: 'grace', roles: ['read', 'decide'] },
];

/** A `perdure serve`, and the port on which it listens. */
interface Served {
  running: Running;
  port: number;
}

interface BrowseOptions extends BrowserContextOptions {
  /** Sessions whose items the inbox has: other tests have theirs on the same server. Default: all. */
  only?: readonly string[];
}

/** A stage with a worker and a server of the console behind a proxy. */
export interface ConsoleStage extends CliStage {
  /** The address of the server. */
  readonly url: string;
  /** Opens a place of the console, such as `/sessions`. */
  browse(place?: string, options?: BrowseOptions, token?: string): Promise<OpenedPage>;
  /** Starts another server behind the same address, and stops the first one, as a rolling restart does. */
  replaceServer(): Promise<void>;
}

/** Starts a worker and `perdure serve`; whoever opens it closes it. */
export async function openConsole(): Promise<ConsoleStage> {
  const stage = await openStage();
  const callers = ['--token', TOKENS.shared, '--tokens', JSON.stringify(PEOPLE)];
  const serve = async (): Promise<Served> => {
    const running = stage.start(['serve', '--port', '0', '--json', ...callers]);
    const ready = JSON.parse(await running.line((line) => line)) as { url: string };
    return { running, port: Number(new URL(ready.url).port) };
  };
  const stop = async ({ running }: Served): Promise<void> => {
    running.child.kill('SIGTERM');
    await running.ended;
  };
  const [first] = await Promise.all([serve(), stage.startWorker()]);
  let server = first;
  const proxy = createServer((caller) => {
    const to = connect(server.port, '127.0.0.1');
    pipeline(caller, to, caller, () => undefined);
  });
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return {
    ...stage,
    url,
    browse: async (place = '', { only, ...options } = {}, given = TOKENS.shared) => {
      const opened = await openPage(options);
      if (only !== undefined) await showOnly(opened.page, only);
      await opened.page.goto(`${url}/console${place}#token=${given}`);
      onTestFinished(() => {
        if (opened.errors.length > 0) throw new Error(`the page had errors:\n${opened.errors.join('\n')}`);
      });
      return opened;
    },
    replaceServer: async () => {
      const before = server;
      server = await serve();
      await stop(before);
    },
    close: async () => {
      proxy.close();
      await stop(server);
      await stage.close();
    },
  };
}

async function showOnly(page: Page, sessions: readonly string[]): Promise<void> {
  await page.route('**/inbox', async (route) => {
    const response = await route.fetch();
    const inbox = (await response.json()) as Inbox;
    const items = inbox.items.filter(({ sessionId }) => sessions.includes(sessionId));
    await route.fulfill({ response, json: { ...inbox, items } });
  });
}

/** Holds requests back until they are released, and counts them. */
export async function hold(page: Page, path: string): Promise<{ release: () => void; count: () => number }> {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let count = 0;
  await page.route(path, async (route) => {
    count += 1;
    await released;
    await route.continue();
  });
  return { release, count: () => count };
}

/** The answer of the first request is lost: the server has acted, and the page does not know. */
export async function loseFirst(page: Page, path: string): Promise<{ answers: unknown[] }> {
  const answers: unknown[] = [];
  await page.route(
    path,
    async (route) => {
      answers.push(await (await route.fetch()).json());
      await route.abort();
    },
    { times: 1 },
  );
  return { answers };
}

/** Shows a tab, or hides it as behind another one. A browser without a window shows all of its tabs. */
export async function show(page: Page, state: 'visible' | 'hidden'): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
}

/** The violations of WCAG AA that axe finds on a page, with their places. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const run =
    'axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })';
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    run,
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
