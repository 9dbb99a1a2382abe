/** The console in Chromium: how soon it shows a server with many sessions, and a decision. */
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { Browser, Page } from 'playwright-core';
import { SEARCH_ATTRIBUTE, WORKFLOW } from '../../src/contract/names.ts';
import { CHROMIUM, GET_CHROMIUM, launchChromium } from '../support/chromium.ts';
import type { Context, Measure } from '../support/context.ts';
import { jobText } from '../support/job.ts';
import { startMeasured } from '../support/processes.ts';
import type { Line } from '../support/report.ts';
import type { Scene } from '../support/scene.ts';
import { median } from '../support/stats.ts';
import { until } from '../support/until.ts';

const SESSIONS = { full: 10_000, quick: 1_000 } as const;
const WAITING = { full: 50, quick: 5 } as const;
const ROUNDS = { full: 15, quick: 3 } as const;
const AT_ONCE = 50;

/** In the page: when an element with a text has been painted, in milliseconds since 1970. */
const WHEN = `
  globalThis.shownAt = (selector, text = '') => new Promise((resolve) => {
    const look = () => {
      if (![...document.querySelectorAll(selector)].some((each) => each.textContent.includes(text))) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => resolve(performance.timeOrigin + performance.now())));
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { childList: true, subtree: true, characterData: true });
    look();
  });
  globalThis.firstShown = shownAt('tbody tr, .row');
`;

/** Starts sessions that a list can read: it reads what it shows from visibility. No worker runs them. */
async function startMany({ client }: Scene, count: number): Promise<void> {
  const taskQueue = `nobody-${randomUUID()}`;
  const keyword = (name: keyof typeof SEARCH_ATTRIBUTE, value: string) => ({
    key: defineSearchAttributeKey(SEARCH_ATTRIBUTE[name], 'KEYWORD'),
    value,
  });
  const typedSearchAttributes = new TypedSearchAttributes([
    keyword('agent', 'bench'),
    keyword('status', 'active'),
    keyword('tenant', 'lamps'),
  ]);
  for (let n = 0; n < count; n += AT_ONCE) {
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - n) }, () =>
        client.workflow.start(WORKFLOW.session, {
          workflowId: `ticket-${randomUUID()}`,
          taskQueue,
          typedSearchAttributes,
          args: [{ agent: 'bench' }],
        }),
      ),
    );
  }
}

/** Opens a place of the console in a browser with an empty cache. */
async function open(browser: Browser, address: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.addInitScript(WHEN);
  await page.goto(address);
  return page;
}

/** Milliseconds from the opening of an address to its first row on the screen. */
async function firstRow(browser: Browser, address: string): Promise<number> {
  const page = await open(browser, address);
  const ms = await page.evaluate<number>('firstShown.then((at) => at - performance.timeOrigin)');
  await page.context().close();
  return ms;
}

/**
 * Milliseconds from the key press that confirms an approval to its row, to its outcome, and to another reader's page.
 */
async function decide(
  browser: Browser,
  addressOf: (place: string) => string,
  id: string,
): Promise<Record<'here' | 'result' | 'elsewhere', number>> {
  const other = await open(browser, addressOf(`/sessions/${id}`));
  await other.locator('.card').first().waitFor();
  const page = await open(browser, addressOf(`?session=${id}`));
  await page.getByRole('link', { name: id }).waitFor();
  await page.keyboard.press('a');
  await page.getByRole('form', { name: 'Approve' }).waitFor();
  const shown = other.evaluate<number>(`shownAt('.card .life', 'approved by')`);
  const [pressed, here, result] = await page.evaluate<number[]>(`(async () => {
    const here = shownAt('.decided', '${id}');
    const result = shownAt('.decided .next', 'returned');
    const pressed = performance.timeOrigin + performance.now();
    document.querySelector('form.panel [type=submit]').click();
    return [pressed, await here, await result];
  })()`);
  const since = (at: number | undefined): number => (at ?? Number.NaN) - (pressed ?? Number.NaN);
  const ms = { here: since(here), result: since(result), elsewhere: since(await shown) };
  await Promise.all([page.context().close(), other.context().close()]);
  return ms;
}

export const consolePage: Measure = async (context: Context) => {
  if (CHROMIUM === undefined) {
    console.error(`console: there is no Chromium, so its figures are left out. ${GET_CHROMIUM}`);
    return [];
  }
  // The HTTP API looks for the console there, beside the compiled sources.
  const folder = fileURLToPath(new URL('../../src/console', import.meta.url));
  const { status } = spawnSync(process.execPath, ['scripts/bundle-console.mjs', folder], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the console cannot be built');
  const size = context.quick ? 'quick' : 'full';
  const { address } = await context.server();
  const scene = await context.scene();
  const taskQueue = `console-${randomUUID()}`;
  const token = randomBytes(32).toString('hex');
  const server = startMeasured('console-server', [address, taskQueue, await context.temporaryDir(), token]);
  const { port } = await server.said('ready');
  const browser = await launchChromium();
  const at = (place: string): string => `http://127.0.0.1:${port}/console${place}#token=${token}`;
  try {
    await startMany(scene, SESSIONS[size] - WAITING[size]);
    const waiting = await Promise.all(
      Array.from({ length: WAITING[size] }, async () => {
        const id = randomUUID();
        await scene.sessions.start('bench', {
          id,
          taskQueue,
          message: jobText({ id, turns: 1, tool: 'mutate' }),
        });
        await until(async () => (await scene.sessions.get(id).state()).phase === 'approval', {
          everyMs: 100,
        });
        return id;
      }),
    );
    const samples = { list: [] as number[], inbox: [] as number[] };
    for (let round = 0; round < ROUNDS[size]; round++) {
      samples.list.push(await firstRow(browser, at('/sessions')));
      samples.inbox.push(await firstRow(browser, at('')));
    }
    const all = await open(browser, at('/sessions'));
    const allMs = await showAll(all, SESSIONS[size]);
    await all.context().close();
    const decisions: Awaited<ReturnType<typeof decide>>[] = [];
    for (const id of waiting.slice(0, ROUNDS[size])) decisions.push(await decide(browser, at, id));
    const line = (what: string, ms: number[], atMost?: number): Line => ({
      measure: 'console',
      what,
      value: median(ms),
      unit: 'ms',
      ...(atMost === undefined ? {} : { target: { atMost } }),
      samples: { ms },
    });
    const many = `of ${SESSIONS[size].toLocaleString('en')} sessions`;
    return [
      line(`first paint of the list ${many}`, samples.list, 1_000),
      line(`first paint of the inbox ${many}, ${WAITING[size]} of them waiting`, samples.inbox, 1_000),
      line(`the list of all ${SESSIONS[size].toLocaleString('en')}, once somebody asks for them`, [allMs]),
      line(
        'an approval until it shows',
        decisions.map(({ here }) => here),
        300,
      ),
      line(
        'the same in the page of somebody else',
        decisions.map(({ elsewhere }) => elsewhere),
        300,
      ),
      line(
        "an approval until the call's result shows",
        decisions.map(({ result }) => result),
      ),
    ];
  } finally {
    await browser.close();
    await server.kill();
  }
};

/** Milliseconds until the list has all sessions, from the click that asks for them. */
async function showAll(page: Page, count: number): Promise<number> {
  const more = page.getByRole('button', { name: 'Show up to' });
  await more.click();
  if (count > 1_000) {
    await page.locator('table[aria-rowcount="1001"]').waitFor();
    await more.waitFor();
  }
  const started = await page.evaluate<number>('performance.timeOrigin + performance.now()');
  const shown = page.evaluate<number>(`shownAt('table[aria-rowcount="${count + 1}"]')`);
  if (count > 1_000) await more.click();
  return (await shown) - started;
}
