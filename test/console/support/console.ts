/** The console as `perdure serve` serves it, in a browser. */
import axe from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
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

/** A stage with a worker and a server of the console. */
export interface ConsoleStage extends CliStage {
  /** The address of the server. */
  readonly url: string;
  /** Opens a place of the console, such as `/sessions`. */
  browse(place?: string, options?: BrowserContextOptions, token?: string): Promise<OpenedPage>;
}

/** Starts a worker and `perdure serve`; whoever opens it closes it. */
export async function openConsole(): Promise<ConsoleStage> {
  const stage = await openStage();
  const callers = ['--token', TOKENS.shared, '--tokens', JSON.stringify(PEOPLE)];
  const server = stage.start(['serve', '--port', '0', '--json', ...callers]);
  await stage.startWorker();
  const ready = JSON.parse(await server.line((line) => line)) as { url: string };
  const { url } = ready;
  return {
    ...stage,
    url,
    browse: async (place = '', options = {}, given = TOKENS.shared) => {
      const opened = await openPage(options);
      await opened.page.goto(`${url}/console${place}#token=${given}`);
      onTestFinished(() => {
        if (opened.errors.length > 0) throw new Error(`the page had errors:\n${opened.errors.join('\n')}`);
      });
      return opened;
    },
    close: async () => {
      server.child.kill('SIGTERM');
      await server.ended;
      await stage.close();
    },
  };
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
